build {
  sources = ["source.qemu.tiny"]
}
