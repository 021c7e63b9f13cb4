import type { OperatorRule, OperatorTable } from "./table.ts";

const NO_GRAPHS: OperatorRule = { refused: "there are no graphs" };
const SEVERAL_RESULTS: OperatorRule = { refused: "a query has one result" };

/** Operators that are not supported, and why. */
export const REFUSED: OperatorTable = {
  AssertSchemaOperator: { refused: "it is not in the reference" },
  ConsumeOperator: { refused: "it gives no rows: use count" },
  ExecuteAndCacheOperator: { refused: "it is not in the reference" },
  FacetOperator: SEVERAL_RESULTS,
  ForkOperator: SEVERAL_RESULTS,
  GraphMarkComponentsOperator: NO_GRAPHS,
  GraphMatchOperator: NO_GRAPHS,
  GraphShortestPathsOperator: NO_GRAPHS,
  GraphToTableOperator: NO_GRAPHS,
  GraphWhereEdgesOperator: NO_GRAPHS,
  GraphWhereNodesOperator: NO_GRAPHS,
  MacroExpandOperator: { refused: "a query reads one database" },
  MakeGraphOperator: NO_GRAPHS,
  PartitionByOperator: { refused: "it is not in the reference: use partition" },
  ProjectByNamesOperator: { refused: "its columns are known only when it runs: use project" },
  ReduceByOperator: { refused: "it finds patterns by a method that the reference does not describe" },
  ScanOperator: { refused: "it keeps state from row to row: use prev(), next() or row_cumsum()" },
};
