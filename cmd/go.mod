module github.com/spillwaylog/spillway/cmd

go 1.26.0

require github.com/spillwaylog/spillway v0.0.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/klauspost/compress v1.20.3
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/spillwaylog/spillway => ../
