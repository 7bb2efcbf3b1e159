module github.com/spillwaylog/spillway/test

go 1.26.0

require (
	github.com/fluent/fluent-logger-golang v1.10.2
	github.com/klauspost/compress v1.20.3
	github.com/spillwaylog/spillway v0.0.0-00010101000000-000000000000
	golang.org/x/sys v0.49.0
)

require (
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/tinylib/msgp v1.6.5 // indirect
)

replace github.com/spillwaylog/spillway => ../
