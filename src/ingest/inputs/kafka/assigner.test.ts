import type { Cluster } from "kafkajs";
import { describe, expect, test } from "vitest";
import { drawnRandom } from "../../../core/drawn-seed.test-kit.ts";
import { assignerOf } from "./assigner.ts";
import { loadKafkaJs } from "./kafkajs.ts";

const { AssignerProtocol, logLevel, PartitionAssigners } = loadKafkaJs();
const config = { cluster: {} as Cluster, groupId: "engine", logger: { level: logLevel.NOTHING } as never };

type Topics = Readonly<Record<string, readonly string[]>>;

/** Who gets what; `members` says which topics each reads, `sizes` how many partitions there are. */
async function assigned(members: Topics, sizes: Readonly<Record<string, number>>) {
  const asked: string[][] = [];
  const assigner = assignerOf(async (topics) => {
    asked.push([...topics]);
    return new Map(Object.entries(sizes).filter(([topic]) => topics.includes(topic)));
  })(config);
  const group = Object.entries(members).map(([memberId, topics]) => ({
    memberId,
    memberMetadata: assigner.protocol({ topics: [...topics] }).metadata,
  }));
  const answer = await assigner.assign({ members: group, topics: [...(Object.values(members)[0] ?? [])] });
  const shares = answer.map(({ memberId, memberAssignment }) => {
    const decoded = AssignerProtocol.MemberAssignment.decode(memberAssignment);
    return [memberId, { ...decoded?.assignment }] as const;
  });
  return { asked, shares: Object.fromEntries(shares) };
}

describe("the assigner", () => {
  test("speaks the protocol of the one of kafkajs, so that both are one group", () => {
    const [own, old] = [assignerOf(async () => new Map())(config), PartitionAssigners.roundRobin(config)];
    expect([own.name, own.version]).toEqual([old.name, old.version]);
    for (const topics of [[], ["a"], ["a", "é", "c"]])
      expect(own.protocol({ topics })).toEqual(old.protocol({ topics }));
  });

  test("gives partitions in turn to members that read the same, in whatever order they came", async () => {
    const sizes = { a: 4, b: 3 };
    const expected = { m1: { a: [0, 2], b: [0, 2] }, m2: { a: [1, 3], b: [1] } };
    expect((await assigned({ m1: ["a", "b"], m2: ["a", "b"] }, sizes)).shares).toEqual(expected);
    expect((await assigned({ m2: ["b", "a"], m1: ["a", "b"] }, sizes)).shares).toEqual(expected);
  });

  test("gives a member nothing of topics that it does not read, and asks for those that the leader does not", async () => {
    const { asked, shares } = await assigned({ leader: ["a"], other: ["a", "b"], third: ["c"] }, { a: 4, b: 3, c: 1 });
    expect(asked).toEqual([["a", "b", "c"]]);
    // The one that alone reads b has enough of it.
    expect(shares).toEqual({ leader: { a: [0, 1, 2, 3] }, other: { b: [0, 1, 2] }, third: { c: [0] } });
  });

  test("gives nothing to more members than there are partitions, and nothing of topics that are gone", async () => {
    const { shares } = await assigned(
      { m1: ["constructor", "gone"], m2: ["constructor"], m3: ["gone"] },
      { constructor: 1 },
    );
    expect(shares).toEqual({ m1: { constructor: [0] }, m2: {}, m3: {} });
  });

  test("gives each partition that anybody reads to one of those who do", async () => {
    const random = drawnRandom();
    const below = (bound: number) => Math.floor(random.next() * bound);
    for (let round = 0; round < 200; round++) {
      const sizes = Object.fromEntries(Array.from({ length: below(6) }, (_, i) => [`t${i}`, 1 + below(9)]));
      const topicsOf = () => Object.keys(sizes).filter(() => below(2) === 0);
      const members = Object.fromEntries(Array.from({ length: 1 + below(5) }, (_, i) => [`m${i}`, topicsOf()]));
      const { shares } = await assigned(members, sizes);
      const given = Object.entries(shares).flatMap(([memberId, share]) =>
        Object.entries(share).flatMap(([topic, partitions]) => {
          expect(members[memberId]).toContain(topic);
          return partitions.map((partition) => `${topic} ${partition}`);
        }),
      );
      const read = new Set(Object.values(members).flat());
      const all = [...read].flatMap((topic) => Array.from({ length: sizes[topic] ?? 0 }, (_, i) => `${topic} ${i}`));
      expect(given.toSorted()).toEqual(all.toSorted());
    }
  });
});
