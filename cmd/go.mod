module github.com/spillwaylog/spillway/cmd

go 1.25.0

require (
	github.com/dustin/go-humanize v1.1.0
	github.com/spillwaylog/spillway v0.0.0
	golang.org/x/term v0.45.0
)

require (
	github.com/alecthomas/kong v1.17.0
	github.com/klauspost/compress v1.20.3
	golang.org/x/sys v0.47.0
)

replace github.com/spillwaylog/spillway => ../
