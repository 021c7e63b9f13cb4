import type { TableRecord } from "../../catalog/catalog.ts";
import { foldName } from "../../core/names.ts";
import type { ColumnSpec, ColumnType } from "../../format/types.ts";
import { quoteIdentifier } from "../../io/duckdb/duckdb.ts";
import { brief } from "./brief.ts";
import { GRAPH_LIMITS } from "./limits.ts";
import type {
  CountedWord,
  Counts,
  EdgeQuestion,
  Found,
  GraphEdge,
  GraphNode,
  GraphSource,
  SearchQuestion,
  Vocabulary,
} from "./model.ts";
import type { AskSql, Row } from "./queries.ts";
import type { GraphColumns } from "./registry.ts";

/** Expressions of SQL over a row `t` of `from`. Names are quoted; whatever else comes from outside is a parameter. */
export type SqlNodes = SqlRows & { id: string; labels: string; texts: readonly string[] };
export type SqlEdges = SqlRows & { src: string; dst: string; type: string };

type SqlRows = {
  from: string;
  realm: string;
  /** Which rows count; all unless given. */
  where?: string;
  /** What the rows have besides. */
  props: readonly ColumnSpec[];
  /** By what the newest of several rows of one node or edge is known; without it there are no several. */
  newest?: string;
};

/**
 * A graph as two queries. Rows of tables are never changed, only added: of several rows of one id, or of one `src`, `dst`
 * and `type`, the newest counts.
 */
export class SqlGraph implements GraphSource {
  readonly #ask: AskSql;
  readonly #nodes: SqlNodes;
  readonly #edges: SqlEdges;

  constructor(ask: AskSql, nodes: SqlNodes, edges: SqlEdges) {
    this.#ask = ask;
    this.#nodes = nodes;
    this.#edges = edges;
  }

  async mostLinked({ realm, limit }: { realm: string | undefined; limit: number }): Promise<string[]> {
    const { sql: ofRealm, parameters } = realmIs(realm);
    const rows = await this.#ask(
      `WITH n AS (${nodesSql(this.#nodes)}), e AS (${edgesSql(this.#edges)}),
        d AS (SELECT id, count(*) AS degree FROM (SELECT src AS id FROM e UNION ALL SELECT dst AS id FROM e) GROUP BY id)
      SELECT n.id AS id FROM n LEFT JOIN d ON n.id = d.id WHERE ${ofRealm}
      ORDER BY coalesce(d.degree, 0) DESC, n.id LIMIT ${limit + 1}`,
      parameters,
    );
    return rows.map(({ id }) => String(id));
  }

  async counts({ realm }: { realm: string | undefined }): Promise<Counts> {
    const { sql: ofRealm, parameters } = realmIs(realm);
    const [row] = await this.#ask(
      `WITH n AS (${nodesSql(this.#nodes)}), e AS (${edgesSql(this.#edges)})
      SELECT (SELECT count(*) FROM n WHERE ${ofRealm}) AS nodes, (SELECT count(*) FROM e WHERE ${ofRealm}) AS edges`,
      parameters,
    );
    return { nodes: Number(row?.["nodes"]), edges: Number(row?.["edges"]) };
  }

  async vocabulary(): Promise<Vocabulary> {
    const [labels, edgeTypes] = await Promise.all([
      this.#words(`SELECT unnest(labels) AS name FROM (${nodesSql(this.#nodes)})`),
      this.#words(`SELECT type AS name FROM (${edgesSql(this.#edges)})`),
    ]);
    return { labels, edgeTypes };
  }

  async #words(names: string): Promise<CountedWord[]> {
    const rows = await this.#ask(
      `SELECT name, count(*) AS count FROM (${names}) GROUP BY name ORDER BY count DESC, name LIMIT ${GRAPH_LIMITS.vocabulary}`,
      {},
    );
    return rows.map(({ name, count }) => ({ name: String(name), count: Number(count) }));
  }

  async search({ words, labels, realm, limit, offset }: SearchQuestion): Promise<Found> {
    const { sql: ofRealm, parameters } = realmIs(realm);
    const text = ["t.id", "array_to_string(t.labels, ' ')", ...this.#nodes.texts.map((_, i) => `t.x${i}`)].join(", ");
    const conditions = [
      ofRealm,
      ...(labels.length > 0 ? ["list_has_any(labels, $labels::VARCHAR[])"] : []),
      ...(words.length > 0
        ? ["list_bool_and(list_transform($words::VARCHAR[], w -> contains(haystack, lower(w))))"]
        : []),
    ];
    const [row] = await this.#ask(
      `WITH n AS (SELECT id, labels, realm, lower(concat_ws(' ', ${text})) AS haystack
        FROM (${nodesSql(this.#nodes, { texts: true })}) AS t),
        found AS (SELECT id, length(haystack) AS size FROM n WHERE ${conditions.join(" AND ")}),
        page AS (SELECT id, size FROM found ORDER BY size, id LIMIT ${limit} OFFSET ${offset})
      SELECT (SELECT count(*) FROM found) AS total, (SELECT to_json(list(id ORDER BY size, id)) FROM page) AS ids`,
      { ...parameters, ...(labels.length > 0 && { labels }), ...(words.length > 0 && { words }) },
    );
    return { ids: ((row?.["ids"] ?? []) as unknown[]).map(String), total: Number(row?.["total"]) };
  }

  async nodes(ids: readonly string[], detail: "brief" | "whole"): Promise<GraphNode[]> {
    if (ids.length === 0) return [];
    const { sql, parameters } = idsAsked(ids);
    const rows = await this.#ask(nodesSql(this.#nodes, { detail, where: `${this.#nodes.id} IN ${sql}` }), parameters);
    return rows.map((row) => {
      const { realm, props } = restOf(row, this.#nodes, detail);
      return { id: String(row["id"]), labels: ((row["labels"] ?? []) as unknown[]).map(String), realm, props };
    });
  }

  async edges({ ids, direction, onlyInternal, limit }: EdgeQuestion): Promise<GraphEdge[]> {
    if (ids.length === 0) return [];
    const { sql, parameters } = idsAsked(ids);
    const { src, dst } = this.#edges;
    const ends = { src: `${src} IN ${sql}`, dst: `${dst} IN ${sql}` };
    const byDirection = { forward: ends.src, backward: ends.dst, both: `(${ends.src} OR ${ends.dst})` };
    const where = onlyInternal ? `${ends.src} AND ${ends.dst}` : byDirection[direction];
    const rows = await this.#ask(
      `${edgesSql(this.#edges, { detail: "brief", where })} ORDER BY src, dst, type LIMIT ${limit + 1}`,
      parameters,
    );
    return rows.map((row) => {
      const { realm, props } = restOf(row, this.#edges, "brief");
      return { src: String(row["src"]), dst: String(row["dst"]), type: String(row["type"]), realm, props };
    });
  }
}

type Wanted = { detail?: "brief" | "whole"; texts?: true; where?: string };

function nodesSql(nodes: SqlNodes, wanted: Wanted = {}): string {
  const texts = wanted.texts ? nodes.texts.map((text, i) => `${text} AS x${i}`) : [];
  const named = [`${nodes.id} AS id`, `${nodes.labels} AS labels`, ...texts];
  return rowsSql(nodes, named, { wanted, key: [nodes.id], ends: [nodes.id] });
}

function edgesSql(edges: SqlEdges, wanted: Wanted = {}): string {
  const { src, dst, type } = edges;
  return rowsSql(edges, [`${src} AS src`, `${dst} AS dst`, `${type} AS type`], {
    wanted,
    key: [src, dst, type],
    ends: [src, dst],
  });
}

function rowsSql(
  { from, realm, where, props, newest }: SqlRows,
  named: readonly string[],
  { wanted, key, ends }: { wanted: Wanted; key: readonly string[]; ends: readonly string[] },
): string {
  const { detail } = wanted;
  const shown = detail === undefined ? [] : props.map((column, i) => `${shownProp(column, detail)} AS p${i}`);
  const conditions = [...ends.map((end) => `${end} <> ''`), where, wanted.where].filter((each) => each !== undefined);
  const one =
    newest === undefined
      ? ""
      : ` QUALIFY row_number() OVER (PARTITION BY ${key.join(", ")} ORDER BY ${newest} DESC) = 1`;
  return `SELECT ${[...named, `${realm} AS realm`, ...shown].join(", ")} FROM ${from} AS t WHERE ${conditions.join(" AND ")}${one}`;
}

/** Few are named one by one, so that extents are passed over; many as one constant, which is parsed sooner. */
function idsAsked(ids: readonly string[]): { sql: string; parameters: Record<string, string | readonly string[]> } {
  if (ids.length <= MOST_NAMED) return { sql: "$ids", parameters: { ids } };
  return {
    sql: `(SELECT unnest(from_json($ids, '["VARCHAR"]')))`,
    parameters: { ids: JSON.stringify(ids) },
  };
}

const MOST_NAMED = 64;

function realmIs(realm: string | undefined): { sql: string; parameters: Record<string, string> } {
  return realm === undefined ? { sql: "true", parameters: {} } : { sql: "realm = $realm", parameters: { realm } };
}

function isText({ type: { kind } }: ColumnSpec): boolean {
  return kind === "string" || kind === "dynamic";
}

function shownProp(column: ColumnSpec, detail: "brief" | "whole"): string {
  const value = `t.${quoteIdentifier(column.name)}`;
  if (!isText(column)) return value;
  const text = column.type.kind === "string" ? value : `CAST(${value} AS VARCHAR)`;
  return detail === "brief" ? `left(${text}, ${GRAPH_LIMITS.briefChars + 1})` : text;
}

function restOf(row: Row, { props }: SqlRows, detail: "brief" | "whole"): Pick<GraphNode, "realm" | "props"> {
  const shown = props.flatMap(({ name, type }, i): [string, unknown][] => {
    const value = row[`p${i}`] ?? null;
    if (value === null) return [];
    const meant = type.kind === "dynamic" && typeof value === "string" ? jsonOr(value) : value;
    return [[name, detail === "brief" ? brief(meant) : meant]];
  });
  return { realm: (row["realm"] ?? null) as string | null, props: Object.fromEntries(shown) };
}

/** What was cut off is no JSON any more, and shown as text. */
function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A graph over tables. */
export function tableGraph(
  ask: AskSql,
  columns: GraphColumns,
  { nodes, edges }: { nodes: TableRecord; edges: TableRecord },
): SqlGraph {
  const ofNodes = columnsIn(nodes, columns.realm, [columns.id, columns.labels]);
  const ofEdges = columnsIn(edges, columns.realm, [columns.src, columns.dst, columns.type]);
  const texts = nodes.columns.filter(isText).map(({ name }) => `CAST(t.${quoteIdentifier(name)} AS VARCHAR)`);
  return new SqlGraph(
    ask,
    { ...ofNodes, id: ofNodes.text(columns.id), labels: ofNodes.list(columns.labels), texts },
    {
      ...ofEdges,
      src: ofEdges.text(columns.src),
      dst: ofEdges.text(columns.dst),
      type: `coalesce(${ofEdges.text(columns.type)}, '')`,
    },
  );
}

function columnsIn({ database, name, columns }: TableRecord, realm: string | undefined, named: readonly string[]) {
  const used = new Set([...named, ...(realm === undefined ? [] : [realm])].map(foldName));
  const typeOf = (column: string): ColumnType | undefined =>
    columns.find((each) => foldName(each.name) === foldName(column))?.type;
  const text = (column: string): string => {
    const value = `t.${quoteIdentifier(column)}`;
    const kind = typeOf(column)?.kind;
    if (kind === "string") return value;
    // A JSON text without its quotes.
    return kind === "dynamic" ? `(${value} ->> '$')` : `CAST(${value} AS VARCHAR)`;
  };
  /** A label, or a JSON array of them. */
  const list = (column: string): string => {
    const value = text(column);
    const isArray = `${value} LIKE '[%' AND json_valid(${value})`;
    return `CASE WHEN ${value} IS NULL OR ${value} = '' THEN [] WHEN ${isArray} THEN from_json(${value}, '["VARCHAR"]') ELSE [${value}] END`;
  };
  return {
    from: `${quoteIdentifier(database)}.${quoteIdentifier(name)}`,
    realm: realm === undefined || typeOf(realm) === undefined ? "NULL::VARCHAR" : text(realm),
    props: columns.filter((column) => !used.has(foldName(column.name)) && column.type.kind !== "vector"),
    newest: `t."at"`,
    text,
    list,
  };
}
