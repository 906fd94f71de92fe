"""From a tree of files to an OCI image: layers, compression, layout, archive; and back."""
