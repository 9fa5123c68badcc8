// SPDX-License-Identifier: Apache-2.0

// Calls franz-go's admin APIs, so that a proxy can record what it sends.
// Usage: admin BOOTSTRAP TOPIC. Requests for which kadm has no call are made with kmsg.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// settle names an error answer, which is worth as much as a good one here.
func settle(_ any, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "answer:", err)
	}
}

func change(ctx context.Context, admin *kadm.Client, topic string) {
	hour := "3600000"
	settle(admin.CreateTopics(ctx, 2, 1, map[string]*string{"retention.ms": &hour}, topic))
	settle(admin.CreateTopics(ctx, 2, 1, nil, topic))
	settle(admin.CreatePartitions(ctx, 1, topic))
	settle(admin.DescribeTopicConfigs(ctx, topic))
	size := "2000000"
	edit := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &size}}
	settle(admin.AlterTopicConfigs(ctx, edit, topic))
	settle(admin.AlterTopicConfigsState(ctx, edit, topic))
}

func look(ctx context.Context, client *kgo.Client, admin *kadm.Client, topic string) {
	record := kgo.StringRecord("value")
	record.Topic = topic
	settle(nil, client.ProduceSync(ctx, record).FirstErr())
	settle(admin.Metadata(ctx, topic))
	settle(admin.ListEndOffsets(ctx, topic))
	settle(admin.ListMaxTimestampOffsets(ctx, topic))
	settle(admin.ListOffsetsAfterMilli(ctx, 1, topic))
	set := kadm.TopicsSet{}
	set.Add(topic, 0, 1, 2)
	settle(admin.DescribeProducers(ctx, set))
	settle(admin.DescribeAllLogDirs(ctx, set))
	epochs := kadm.OffsetForLeaderEpochRequest{}
	epochs.Add(topic, 0, 0)
	settle(admin.OffsetForLeaderEpoch(ctx, epochs))
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, 0, -1)
	settle(admin.DeleteRecords(ctx, offsets))
	settle(admin.FindGroupCoordinators(ctx, "golden-group"), nil)
	settle(client.Request(ctx, kmsg.NewPtrDescribeClusterRequest()))
	parts := kmsg.NewPtrDescribeTopicPartitionsRequest()
	name := kmsg.NewDescribeTopicPartitionsRequestTopic()
	name.Topic = topic
	parts.Topics = append(parts.Topics, name)
	settle(client.Request(ctx, parts))
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]))
	settle(nil, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	change(ctx, admin, os.Args[2])
	look(ctx, client, admin, os.Args[2])
	settle(admin.DeleteTopics(ctx, os.Args[2], "golden-missing"))
}
