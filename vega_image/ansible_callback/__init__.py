"""The folder that ansible-playbook is told to load our callback plugin from."""
