module github.com/spillwaylog/spillway/compat/fluent

go 1.25.0

require (
	github.com/spillwaylog/spillway v0.0.0-00010101000000-000000000000
	github.com/tinylib/msgp v1.3.0
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/spillwaylog/spillway => ../../
