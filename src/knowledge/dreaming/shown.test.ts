import { expect, test } from "vitest";
import type { EdgeRecord, NodeRecord } from "../memory/model.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import { fittingEdges, fittingNodes, memoriesText, shownOf } from "./shown.ts";

const memory = (id: string): NodeRecord => ({
  id,
  realm: "default",
  kind: "memory",
  memoryType: "fact",
  entityKind: undefined,
  name: undefined,
  content: '"'.repeat(16_000),
  tags: Array.from({ length: 50 }, (_, i) => `${i}`.padEnd(100, "t")),
  importance: 0.5,
  topicKey: undefined,
  trust: "derived",
  source: undefined,
  props: {},
  version: 1,
  createdAtUs: 0,
  updatedAtUs: 0,
  originUpdatedAtUs: 0,
  validFromUs: 0,
  validToUs: undefined,
  invalidatedAtUs: undefined,
  invalidatedBy: undefined,
  invalidationReason: undefined,
  contentHash: "",
});
const edge = { id: "e", src: "0", dst: "1", rel: "r".repeat(64) } as EdgeRecord;

test("large memories take no more of a question than their share", () => {
  const nodes = Array.from({ length: 200 }, (_, i) => memory(String(i)));
  const one = memoriesText(shownOf([], nodes.slice(0, 1), []));
  expect(one.length).toBeLessThanOrEqual(DREAMING_LIMITS.memoryLineChars + 10);
  for (const chars of [0, 500, 10_000, 60_000]) {
    const fits = fittingNodes(nodes, chars);
    const edges = fittingEdges(
      Array.from({ length: 200 }, () => edge),
      chars,
    );
    expect(memoriesText(shownOf([], fits, [])).length).toBeLessThanOrEqual(chars);
    expect(memoriesText(shownOf([], [], edges)).length).toBeLessThanOrEqual(chars);
  }
  expect(fittingNodes(nodes, 60_000).length).toBeGreaterThan(50);
});
