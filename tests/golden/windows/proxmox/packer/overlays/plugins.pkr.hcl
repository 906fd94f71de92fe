# For packer 1.7 and newer, which fetch their builders as plugins: `packer init packer`. Copied
# into packer/ by the commands of README.md; packer 1.6.6 refuses this file.
packer {
  required_plugins {
    proxmox = {
      version = "= 1.2.4"
      source  = "github.com/hashicorp/proxmox"
    }
    windows-update = {
      version = "= 0.18.4"
      source  = "github.com/rgl/windows-update"
    }
  }
}
