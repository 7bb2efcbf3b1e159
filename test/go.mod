module github.com/spillwaylog/spillway/test

go 1.26.0

require (
	github.com/IBM/fluent-forward-go v0.4.0
	github.com/fluent/fluent-logger-golang v1.10.2
	github.com/klauspost/compress v1.20.3
	github.com/spillwaylog/spillway v0.0.0-00010101000000-000000000000
	github.com/tinylib/msgp v1.6.5
	github.com/vmihailenco/msgpack/v5 v5.4.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.49.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/gorilla/websocket v1.4.2 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
)

replace github.com/spillwaylog/spillway => ../
