import { expect, test } from "vitest";
import type { EdgeRecord, NodeRecord } from "../memory/model.ts";
import { needsOf } from "./plan.ts";
import type { Proposal } from "./proposals.ts";
import { resolveProposals } from "./resolve.ts";
import { shownOf } from "./shown.ts";

const node = (id: string, kind: NodeRecord["kind"]) => ({ id, kind, version: 1, realm: "default" }) as NodeRecord;
const edge = { id: "edge", src: "ann", dst: "acme", version: 1, realm: "default" } as EdgeRecord;
/** m1, m2, m3; then the entities m4 and m5. */
const nodes = [
  ...["one", "two", "three"].map((id) => node(id, "memory")),
  ...["ann", "acme"].map((id) => node(id, "entity")),
];
const shown = shownOf([{ id: "1", at: "", text: "{}" }], nodes, [edge]);
const why = { reason: "So.", evidence: ["e1"] };

function resolve(...proposals: Proposal[]) {
  let ids = 0;
  const context = { realms: ["default"], mode: "incremental", runId: "run", newId: () => `new${++ids}` } as const;
  return resolveProposals(proposals, { ...context, shown });
}

test("entities are neither merged nor ended, and no edge is read for them", () => {
  const { resolved, refused } = resolve(
    { action: "add", ...why, kind: "entity", entity_kind: "person", name: "bob", name_it: "n1" },
    { action: "merge", ...why, into: "m4", from: ["m5"] },
    { action: "merge", ...why, into: "m1", from: ["m5"] },
    { action: "invalidate", ...why, target: "m4", by: "m1" },
    { action: "invalidate", ...why, target: "m1", by: "m4" },
    { action: "invalidate", ...why, target: "m1", by: "n1" },
    { action: "invalidate", ...why, target: "r1", by: "m1" },
    { action: "invalidate", ...why, target: "m1", by: "r1" },
  );
  expect(refused).toEqual(Array.from({ length: 7 }, () => "rule"));
  expect(needsOf(resolved).edgesOf).toEqual([]);
});

test("the edges of a memory are read once, however many proposals are about it", () => {
  const { resolved } = resolve(
    { action: "merge", ...why, into: "m1", from: ["m2", "m3"] },
    ...Array.from({ length: 50 }, (): Proposal => ({ action: "invalidate", ...why, target: "m2", by: "m1" })),
  );
  expect(resolved).toHaveLength(51);
  expect(needsOf(resolved).edgesOf).toEqual(["one", "two", "three"]);
});
