module example.com/ends

go 1.25.0

require github.com/spillwaylog/spillway v0.0.0

require (
	github.com/klauspost/compress v1.20.3 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/spillwaylog/spillway => ../..
