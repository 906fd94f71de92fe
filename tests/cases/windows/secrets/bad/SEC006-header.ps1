$h = @{ Authorization = 'Basic dXNlcjpwYXNz' } # refuse: SEC006
curl -H "Authorization: Basic dXNlcjpwYXNz" # refuse: SEC006
