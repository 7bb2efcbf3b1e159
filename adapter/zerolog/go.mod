module github.com/spillwaylog/spillway/adapter/zerolog

go 1.25.0

require (
	github.com/rs/zerolog v1.35.1
	github.com/spillwaylog/spillway v0.0.0-00010101000000-000000000000
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/spillwaylog/spillway => ../../
