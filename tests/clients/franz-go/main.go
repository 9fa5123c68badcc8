// SPDX-License-Identifier: Apache-2.0

// franz-go behind the common command line of the clients (see ../README.md).
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "franz-go:", err)
		os.Exit(1)
	}
}

func parse(field string) []byte {
	if field == "null" {
		return nil
	}
	data, err := hex.DecodeString(field[1:])
	check(err)
	return data
}

func show(data []byte) string {
	if data == nil {
		return "null"
	}
	return "x" + hex.EncodeToString(data)
}

func version() {
	number := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/twmb/franz-go" {
				number = strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	fmt.Println("franz-go", number)
	fmt.Println("codecs none gzip snappy lz4 zstd")
	fmt.Println("idempotence yes")
	fmt.Println("timestamps yes")
	fmt.Println("acks yes")
	fmt.Println("null_headers yes")
}

func connect(bootstrap string, opts ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(bootstrap, ",")...))...)
	check(err)
	return client
}

func create(ctx context.Context, bootstrap, topic, partitions string) {
	client := connect(bootstrap)
	defer client.Close()
	count, err := strconv.Atoi(partitions)
	check(err)
	_, err = kadm.NewClient(client).CreateTopic(ctx, int32(count), 1, nil, topic)
	check(err)
}

func record(topic, line string) *kgo.Record {
	part := strings.Split(line, " ")
	partition, err := strconv.ParseInt(part[0], 10, 32)
	check(err)
	millis, err := strconv.ParseInt(part[1], 10, 64)
	check(err)
	var headers []kgo.RecordHeader
	if part[4] != "-" {
		for _, header := range strings.Split(part[4], ",") {
			name, value, _ := strings.Cut(header, "=")
			headers = append(headers, kgo.RecordHeader{Key: string(parse(name)), Value: parse(value)})
		}
	}
	return &kgo.Record{
		Topic: topic, Partition: int32(partition), Timestamp: time.UnixMilli(millis),
		Key: parse(part[2]), Value: parse(part[3]), Headers: headers,
	}
}

func readLines(path string) []string {
	file, err := os.Open(path)
	check(err)
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	var lines []string
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	check(scanner.Err())
	return lines
}

func produce(ctx context.Context, bootstrap, topic, codec, idempotent, path string) {
	opts := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[codec]),
		kgo.ProducerLinger(50 * time.Millisecond),
		kgo.RequiredAcks(kgo.AllISRAcks()),
	}
	if idempotent != "true" {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	client := connect(bootstrap, opts...)
	defer client.Close()
	var records []*kgo.Record
	for _, line := range readLines(path) {
		records = append(records, record(topic, line))
	}
	check(client.ProduceSync(ctx, records...).FirstErr())
	for _, one := range records {
		fmt.Println(one.Partition, one.Offset)
	}
}

func printRecord(out *bufio.Writer, r *kgo.Record) {
	headers := "-"
	for i, header := range r.Headers {
		shown := show([]byte(header.Key)) + "=" + show(header.Value)
		if i == 0 {
			headers = shown
		} else {
			headers += "," + shown
		}
	}
	fmt.Fprintln(out, r.Partition, r.Offset, r.Timestamp.UnixMilli(), show(r.Key), show(r.Value),
		headers)
}

func readAll(ctx context.Context, bootstrap, topic string, out *bufio.Writer) {
	admin := connect(bootstrap)
	ends, err := kadm.NewClient(admin).ListEndOffsets(ctx, topic)
	check(err)
	check(ends.Error())
	admin.Close()
	left, parts := map[int32]int64{}, map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		parts[end.Partition] = kgo.NewOffset().AtStart()
		if end.Offset > 0 {
			left[end.Partition] = end.Offset
		}
	})
	client := connect(bootstrap, kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: parts}))
	defer client.Close()
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				printRecord(out, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
}

func consume(ctx context.Context, bootstrap string, topics []string) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, topic := range topics {
		fmt.Fprintln(out, "topic", topic)
		readAll(ctx, bootstrap, topic, out)
	}
}

// member consumes in a group until it is told to stop; see ../groups/members.py.
func member(bootstrap, group, topic string) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	assigned := func(_ context.Context, client *kgo.Client, topics map[string][]int32) {
		_, generation := client.GroupMetadata()
		fmt.Println("generation", generation, strings.Trim(fmt.Sprint(topics[topic]), "[]"))
	}
	client := connect(bootstrap, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ClientID(os.Getenv("CLIENT_ID")), kgo.OnPartitionsAssigned(assigned),
		kgo.Balancers(kgo.RangeBalancer()), kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(time.Second), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer client.Close()
	work, _ := strconv.Atoi(os.Getenv("WORK_MS")) // none if it is not set
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		fetches.EachRecord(func(r *kgo.Record) { fmt.Println(r.Partition, r.Offset) })
		if !fetches.Empty() {
			time.Sleep(time.Duration(work) * time.Millisecond)
		}
		if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "franz-go: commit:", err)
		}
		// Or what was read before a rebalance could be committed after it, behind its new owner.
		client.AllowRebalance()
	}
	client.AllowRebalance()
}

// write writes the lines of standard input, with the settings that a producer has by itself.
func write(ctx context.Context, bootstrap, topic string) {
	client := connect(bootstrap, kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)))
	defer client.Close()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		number, value, _ := strings.Cut(lines.Text(), " ")
		partition, err := strconv.Atoi(number)
		check(err)
		client.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(partition), Value: []byte(value)},
			func(r *kgo.Record, err error) {
				check(err)
				fmt.Println(r.Partition, r.Offset, string(r.Value))
			})
	}
	check(client.Flush(ctx))
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	switch arg := os.Args; arg[1] {
	case "version":
		version()
	case "create":
		create(ctx, arg[2], arg[3], arg[4])
	case "produce":
		produce(ctx, arg[2], arg[3], arg[4], arg[5], arg[6])
	case "consume":
		consume(ctx, arg[2], arg[3:])
	case "member":
		member(arg[2], arg[3], arg[4])
	case "write":
		write(ctx, arg[2], arg[3])
	default:
		check(fmt.Errorf("no such command: %s", arg[1]))
	}
}
