#!/bin/sh
# Leaves what would differ from build to build if the image kept times, owners or order.
set -eu
echo "greet: begun"
sleep "$2"
cd /opt/greet
echo "$1" > word
cat /usr/share/tiny/app > copy
for name in c a b; do
    mkdir -p "$name"
    date > /tmp/when
    echo "$name" > "$name/$name"
done
ln -s a/a first
chmod 0700 b
id -u > uid
rm /opt/greet/greet.sh
echo "greet: done" >&2
