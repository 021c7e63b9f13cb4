import { expect, test } from "vitest";
import { mayReplaceEdge, mayReplaceNode } from "./replaces.ts";

const ENTITIES = new Set(["ann", "bob", "acme", "initech"]);
const isEntity = (id: string): boolean => ENTITIES.has(id);
const edge = (src: string, rel: string, dst: string, namespace = "memory") => ({ src, rel, dst, namespace });

test.each([
  ["the same two entities, by another relation", edge("ann", "works_at", "acme"), edge("ann", "left", "acme"), true],
  ["the same two entities, the other way round", edge("ann", "manages", "bob"), edge("bob", "reports_to", "ann"), true],
  ["the same entity, end and relation", edge("ann", "works_at", "acme"), edge("ann", "works_at", "initech"), true],
  ["the same entity at the other end", edge("acme", "employs", "ann"), edge("initech", "employs", "ann"), true],
  ["the same entity by another relation", edge("ann", "works_at", "acme"), edge("ann", "likes", "initech"), false],
  ["the same relation at the other end", edge("ann", "manages", "bob"), edge("acme", "manages", "ann"), false],
  ["a relation that says nothing", edge("ann", "related_to", "acme"), edge("ann", "related_to", "initech"), false],
  ["the same two, that says nothing", edge("ann", "works_at", "acme"), edge("ann", "mentions", "acme"), false],
  ["other entities", edge("ann", "works_at", "acme"), edge("bob", "works_at", "initech"), false],
  ["memories, which are no entities", edge("m1", "about", "m2"), edge("m1", "about", "m3"), false],
  ["another graph", edge("ann", "works_at", "acme", "people"), edge("ann", "works_at", "initech", "people"), false],
] as const)("an edge ends for one of %s: %#", (_what, old, by, may) => {
  expect(mayReplaceEdge(old, by, isEntity)).toBe(may);
});

const memory = (id: string) => ({ id, kind: "memory" }) as const;

test.each([
  [
    "the same two entities",
    [edge("m1", "mentions", "ann"), edge("m1", "mentions", "acme")],
    [edge("m2", "about", "ann"), edge("m2", "about", "acme")],
    true,
  ],
  ["the same entity by the same relation", [edge("m1", "owner_of", "acme")], [edge("m2", "owner_of", "acme")], true],
  ["the same entity by a vague relation", [edge("m1", "mentions", "acme")], [edge("m2", "mentions", "acme")], false],
  ["the same entity by another relation", [edge("m1", "owner_of", "acme")], [edge("m2", "about", "acme")], false],
  ["the same entity at another end", [edge("m1", "about", "acme")], [edge("acme", "about", "m2")], false],
  ["the same memory, which is no entity", [edge("m1", "about", "m9")], [edge("m2", "about", "m9")], false],
  ["nothing", [], [], false],
] as const)("a memory ends for one of %s: %#", (_what, oldEdges, byEdges, may) => {
  expect(mayReplaceNode(memory("m1"), oldEdges, memory("m2"), byEdges, isEntity)).toBe(may);
});

test("nothing replaces an entity", () => {
  const both = [edge("ann", "about", "acme"), edge("ann", "about", "initech")];
  const others = [edge("bob", "about", "acme"), edge("bob", "about", "initech")];
  expect(mayReplaceNode({ id: "ann", kind: "entity" }, both, { id: "bob", kind: "entity" }, others, isEntity)).toBe(
    false,
  );
});
