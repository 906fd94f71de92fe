# A login shell says so when the CPU reference has not passed.
if [ -x /usr/bin/vega-reference ]; then
    vega_image_state=$(/usr/bin/vega-reference state 2>/dev/null) || :
    if [ "$vega_image_state" != pass ]; then
        echo "vega-image: the CPU reference is ${vega_image_state:-unknown}: trust no number of this distribution" >&2
    fi
    unset vega_image_state
fi
