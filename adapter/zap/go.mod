module github.com/spillwaylog/spillway/adapter/zap

go 1.25.0

require (
	github.com/spillwaylog/spillway v0.0.0-00010101000000-000000000000
	go.uber.org/zap v1.28.0
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/spillwaylog/spillway => ../../
