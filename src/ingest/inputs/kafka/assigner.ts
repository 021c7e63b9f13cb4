import type { GroupMember, PartitionAssigner } from "kafkajs";
import { loadKafkaJs } from "./kafkajs.ts";

/**
 * Says which member of the group reads which partition: the member that leads does, for all.
 *
 * The one that kafkajs brings gives the topics of the leader to all members. While a new `ENGINE_KAFKA_TOPICS` is rolled
 * out, members read different topics: some then get partitions that they drop, and those stand still. This one gives a
 * partition only to members that read its topic.
 *
 * A group needs a protocol that all its members have, so this one has the name and the wire format of that of kafkajs:
 * servers of older versions and newer ones are one group, whichever of them leads.
 */
const NAME = "RoundRobinAssigner";
const VERSION = 0;

/** `sizesOf` tells how many partitions topics have, also those that only others read; it leaves out what is not there. */
export function assignerOf(
  sizesOf: (topics: readonly string[]) => Promise<ReadonlyMap<string, number>>,
): PartitionAssigner {
  const { MemberAssignment, MemberMetadata } = loadKafkaJs().AssignerProtocol;
  const subscriptionOf = ({ memberId, memberMetadata }: GroupMember): Subscription => {
    const topics = MemberMetadata.decode(memberMetadata)?.topics ?? [];
    return { memberId, topics: new Set(topics) };
  };
  const userData = Buffer.alloc(0);
  return () => ({
    name: NAME,
    version: VERSION,
    protocol: ({ topics }) => ({ name: NAME, metadata: MemberMetadata.encode({ version: VERSION, topics, userData }) }),
    assign: async ({ members }) => {
      const subscriptions = members.map(subscriptionOf);
      const sizes = await sizesOf([...new Set(subscriptions.flatMap(({ topics }) => [...topics]))]);
      return shareOut(subscriptions, sizes).map(({ memberId, partitions }) => ({
        memberId,
        memberAssignment: MemberAssignment.encode({
          version: VERSION,
          assignment: Object.fromEntries(partitions),
          userData,
        }),
      }));
    },
  });
}

type Subscription = { memberId: string; topics: ReadonlySet<string> };
type Share = Subscription & { partitions: Map<string, number[]>; count: number };

/** Each partition to the member with the fewest among those that read its topic; topics that few read come first. */
function shareOut(subscriptions: readonly Subscription[], sizes: ReadonlyMap<string, number>): Share[] {
  const shares = subscriptions
    .map((one): Share => ({ ...one, partitions: new Map(), count: 0 }))
    .toSorted((a, b) => compare(a.memberId, b.memberId));
  const topics = [...sizes]
    .map(([topic, size]) => ({ topic, size, readers: shares.filter((share) => share.topics.has(topic)) }))
    .toSorted((a, b) => a.readers.length - b.readers.length || compare(a.topic, b.topic));
  for (const { topic, size, readers } of topics) {
    for (let partition = 0; partition < size && readers.length > 0; partition++) {
      const least = readers.reduce((best, one) => (one.count < best.count ? one : best));
      least.partitions.set(topic, [...(least.partitions.get(topic) ?? []), partition]);
      least.count++;
    }
  }
  return shares;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
