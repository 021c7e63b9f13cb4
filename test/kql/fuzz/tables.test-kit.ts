import type { KqlTable } from "../../../src/query/kql/contract.ts";

/** Tables for texts that are only translated and bound: nothing is stored in them. */
export const TABLES: readonly KqlTable[] = [
  {
    name: "T",
    columns: [
      { name: "at", type: { kind: "timestamp" } },
      { name: "label", type: { kind: "string" } },
      { name: "n", type: { kind: "long" } },
      { name: "i", type: { kind: "int" } },
      { name: "r", type: { kind: "real" } },
      { name: "b", type: { kind: "bool" } },
      { name: "props", type: { kind: "dynamic" } },
      { name: "vec", type: { kind: "vector", dimensions: 3 } },
    ],
  },
  {
    name: "U",
    columns: [
      { name: "at", type: { kind: "timestamp" } },
      { name: "label", type: { kind: "string" } },
      { name: "k", type: { kind: "long" } },
      { name: "props", type: { kind: "dynamic" } },
    ],
  },
  {
    name: `we"ird ta'ble`,
    columns: [
      { name: `a"b`, type: { kind: "string" } },
      { name: "it's", type: { kind: "long" } },
      { name: "a~1", type: { kind: "real" } },
      { name: "let~1", type: { kind: "string" } },
      { name: "SELECT", type: { kind: "bool" } },
      { name: "größe \u{1f600}", type: { kind: "dynamic" } },
      { name: "--x", type: { kind: "timestamp" } },
      { name: "a\\b", type: { kind: "int" } },
    ],
  },
];
