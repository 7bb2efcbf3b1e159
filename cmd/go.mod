module github.com/spillwaylog/spillway/cmd

go 1.26

require github.com/spillwaylog/spillway v0.0.0

replace github.com/spillwaylog/spillway => ../
