import { classOf, elementsOf, the, type SyntaxExpression, type SyntaxNode } from "../bind/library.ts";
import { ONE_ROW } from "../plan/plans.ts";
import { Rel } from "../plan/rel.ts";
import type { OperatorContext } from "../scope.ts";
import { bagUnpacked } from "./bag-unpack.ts";
import { narrowed } from "./narrow.ts";
import { pivoted } from "./pivot.ts";
import type { PluginCall } from "./plugin.ts";
import { operator, source, type OperatorTable, type SourceTable } from "./table.ts";

/** What becomes of a plugin: its translation, or the reason why not. */
export type PluginRule = { rows: (call: PluginCall) => Rel } | { refused: string };

const CALLS_OUT = "queries open no connections";
const RUNS_CODE = "queries run no code of other languages";
const LEARNS = "it finds patterns by a method that the reference does not describe";
const COUNTS_USERS = "use summarize with dcount()";
const SHAPES = "there is no geometry";

/** All plugins of the language, by name. */
export const PLUGINS: Readonly<Record<string, PluginRule | undefined>> = {
  bag_unpack: { rows: bagUnpacked },
  narrow: { rows: narrowed },
  pivot: { rows: pivoted },
  active_users_count: { refused: COUNTS_USERS },
  activity_counts_metrics: { refused: COUNTS_USERS },
  activity_engagement: { refused: COUNTS_USERS },
  activity_metrics: { refused: COUNTS_USERS },
  ai_chat_completion: { refused: CALLS_OUT },
  ai_chat_completion_prompt: { refused: CALLS_OUT },
  ai_embed_text: { refused: CALLS_OUT },
  ai_embeddings: { refused: CALLS_OUT },
  autocluster: { refused: LEARNS },
  azure_digital_twins_query_request: { refused: CALLS_OUT },
  basket: { refused: LEARNS },
  cosmosdb_sql_request: { refused: CALLS_OUT },
  csharp: { refused: RUNS_CODE },
  dax_request: { refused: CALLS_OUT },
  dcount_intersect: { refused: "sketches (hll) are not supported" },
  diffpatterns: { refused: LEARNS },
  estimate_rows_count: { refused: "use count" },
  execute_query: { refused: CALLS_OUT },
  execute_show_command: { refused: "there are no management commands" },
  external_datatable: { refused: CALLS_OUT },
  funnel_sequence: { refused: COUNTS_USERS },
  funnel_sequence_completion: { refused: COUNTS_USERS },
  geo_line_lookup: { refused: SHAPES },
  geo_polygon_lookup: { refused: SHAPES },
  http_request: { refused: CALLS_OUT },
  http_request_post: { refused: CALLS_OUT },
  identity: { refused: "it is not in the reference" },
  identity_v3: { refused: "it is not in the reference" },
  infer_storage_schema: { refused: CALLS_OUT },
  infer_storage_schema_with_suggestions: { refused: CALLS_OUT },
  ipv4_lookup: { refused: "compare addresses with ipv4_is_in_range() in a join's result" },
  ipv6_lookup: { refused: "compare addresses with ipv6_is_in_range() in a join's result" },
  mysql_request: { refused: CALLS_OUT },
  new_activity_metrics: { refused: COUNTS_USERS },
  postgresql_request: { refused: CALLS_OUT },
  preview: { refused: "it gives two results: use take and count" },
  python: { refused: RUNS_CODE },
  r: { refused: RUNS_CODE },
  rolling_percentile: { refused: "use row_window_session() or make-series" },
  rows_near: { refused: "use prev() and next()" },
  sequence_detect: { refused: COUNTS_USERS },
  session_count: { refused: COUNTS_USERS },
  sliding_window_counts: { refused: COUNTS_USERS },
  sql_request: { refused: CALLS_OUT },
};

/** Plugins over the rows that come in, or over none. */
export const EVALUATIONS: OperatorTable = {
  EvaluateOperator: operator<Kusto.Language.Syntax.EvaluateOperator>(evaluated),
};

export const EVALUATION_SOURCES: SourceTable = {
  EvaluateOperator: source<Kusto.Language.Syntax.EvaluateOperator>((node, translator, variables) => {
    const rel = new Rel(ONE_ROW, []);
    return evaluated(node, rel, { translator, variables, scope: { variables, rel } });
  }),
};

function evaluated(node: Kusto.Language.Syntax.EvaluateOperator, input: Rel, context: OperatorContext): Rel {
  const call = the(node.FunctionCall);
  const rule = PLUGINS[call.Name?.SimpleName ?? ""];
  if (rule === undefined || "refused" in rule) throw context.translator.refuse(reasonAgainstPlugin(node) ?? "", call);
  const args = elementsOf<SyntaxExpression>(call.ArgumentList?.Expressions);
  return rule.rows({ node, call, args, input, context });
}

/** Why a plugin is refused whatever it is called with; undefined for other nodes. */
export function reasonAgainstPlugin(node: SyntaxNode): string | undefined {
  if (classOf(node) !== "EvaluateOperator") return undefined;
  const name = (node as Kusto.Language.Syntax.EvaluateOperator).FunctionCall?.Name?.SimpleName ?? "";
  const rule = PLUGINS[name];
  return rule !== undefined && "refused" in rule ? `plugin ${name} is not supported: ${rule.refused}` : undefined;
}
