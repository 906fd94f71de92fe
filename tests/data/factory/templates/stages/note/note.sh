#!/bin/sh
# Everything a stage can do to a tree: add, link, change, take away, and touch without change.
set -eu
echo "note: writing"
mkdir -p /opt/note/deep/er
echo "$1" > /opt/note/text
ln /opt/note/text /opt/note/hard-link
ln -s text /opt/note/soft-link
: > "/opt/note/deep/a name with 'quotes', \"more\" and ü"
chmod 0750 /opt/note/deep
chmod 4755 /bin/cat
rm /etc/taken-away
rm -r /srv/replaced
mkdir /srv/replaced
echo new > /srv/replaced/new
bytes="$(cat /etc/untouched)"
echo "$bytes" > /etc/untouched
echo "note: written" >&2
