import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { entityId } from "../../src/knowledge/memory/ids.ts";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import { called, mcpClient } from "./mcp.test-kit.ts";
import { CalledServices, type Json } from "./services.test-kit.ts";

type Who = "ann" | "bob" | "root" | "reader" | "scoped";
type Node = { id: string; labels: string[]; realm: string | null; props: Json };
type Edge = { src: string; dst: string; type: string; realm: string | null; props: Json };
type Part = { nodes: Node[]; edges: Edge[]; truncated: boolean };

let services: CalledServices<Who>;

beforeAll(async () => {
  services = await CalledServices.start<Who>([
    ["ann", "write"],
    ["bob", "write"],
    ["root", "admin"],
    ["reader", "read"],
  ]);
  await services.json("root", "POST", "/v1/admin/databases/team/tables/t");
  await services.limit("scoped", "read", ["team"], "root");
});
afterAll(() => services.close());

const engine = (...argv: string[]) => runHere(argv, { env: { ENGINE_HOME: services.home } });

async function store(table: string, rows: readonly Json[], database = "default"): Promise<void> {
  const body = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  const stored = await services.send("ann", "POST", "/v1/ingest", body, { "X-Table": table, "X-Database": database });
  expect([stored.status, await stored.text()]).toEqual([200, expect.anything()]);
}

type Ask = { who?: Who; database?: string; body?: Json };

async function answered(path: string, { who = "reader", database = "default", body }: Ask = {}) {
  const method = body === undefined ? "GET" : "POST";
  return await services.json(who, method, `/v1/graph${path}`, body, { "X-Database": database });
}

async function ask(path: string, options: Ask = {}): Promise<Json> {
  const { httpStatus, ...answer } = await answered(path, options);
  expect([httpStatus, answer["error"]]).toEqual([200, undefined]);
  return answer;
}

const part = async (path: string, options: Ask = {}) => (await ask(path, options)) as Part;

async function refusal(path: string, options: Ask = {}): Promise<[number, string, string]> {
  const { httpStatus, error } = await answered(path, options);
  const { code, message } = error as { code: string; message: string };
  return [httpStatus, code, message];
}

const idsOf = ({ nodes }: Pick<Part, "nodes">) => nodes.map(({ id }) => id);
const linesOf = ({ edges }: Part) => edges.map(({ src, type, dst }) => `${src} ${type} ${dst}`);

let graphs = 0;

/** A graph over tables of its own. */
async function newGraph(nodes: readonly Json[], edges: readonly Json[], ...flags: string[]): Promise<string> {
  const name = `g${++graphs}`;
  await store(`${name}-nodes`, nodes);
  await store(`${name}-edges`, edges);
  const tables = ["--name", name, "--nodes", `${name}-nodes`, "--edges", `${name}-edges`];
  const made = await engine("create-graph", ...tables, ...flags);
  expect([made.code, made.stderr]).toEqual([0, ""]);
  return name;
}

describe("a graph over two tables", () => {
  let name: string;
  beforeAll(async () => {
    name = await newGraph(
      [
        { id: "web", labels: ["service", "public"], owner: "Ann", cores: 4, realm: "blue" },
        { id: "db", labels: "service", owner: "O'Hara", notes: { tier: 1 }, realm: "blue" },
        { id: "bus", labels: "queue", owner: "Bob", about: "x".repeat(1_000), realm: "green" },
        { id: "old", labels: "service", owner: "nobody" },
      ],
      [
        { src: "web", dst: "db", type: "reads", rate: 3 },
        { src: "web", dst: "bus", type: "sends" },
        { src: "bus", dst: "db", type: "writes" },
        { src: "web", dst: "gone", type: "reads" },
      ],
      "--realm-col",
      "realm",
      "--description",
      "Who calls whom",
    );
    // Rows are never changed: of several the newest counts.
    await store(`${name}-nodes`, [{ id: "old", labels: "retired", owner: "nobody" }]);
    await store(`${name}-edges`, [{ src: "web", dst: "db", type: "reads", rate: 5 }]);
  });

  test("is listed beside those that are always there", async () => {
    const { graphs: listed } = await ask("");
    expect(listed).toEqual(
      expect.arrayContaining([
        { name: "schema", kind: "schema", description: expect.stringContaining("tables") },
        { name: "memory", kind: "memory", description: expect.stringContaining("remembered") },
        { name, kind: "tables", description: "Who calls whom" },
      ]),
    );
    const listing = await engine("list-graphs");
    expect(listing.stdout).toMatch(new RegExp(`${name} +${name}-nodes +${name}-edges +Who calls whom`));
  });

  test("has counts, of a realm too, and words", async () => {
    expect(await ask(`/${name}/stats`)).toEqual({ nodes: 4, edges: 4 });
    expect(await ask(`/${name}/stats?realm=blue`)).toEqual({ nodes: 2, edges: 0 });
    expect(await ask(`/${name}/schema`)).toEqual({
      labels: [
        { name: "service", count: 2 },
        { name: "public", count: 1 },
        { name: "queue", count: 1 },
        { name: "retired", count: 1 },
      ],
      edge_types: [
        { name: "reads", count: 2 },
        { name: "sends", count: 1 },
        { name: "writes", count: 1 },
      ],
    });
  });

  test("is shown from the best linked node on, without edges whose end is no node", async () => {
    const all = await part(`/${name}/overview`);
    expect(idsOf(all)).toEqual(["web", "bus", "db", "old"]);
    expect(linesOf(all)).toEqual(["bus writes db", "web sends bus", "web reads db"]);
    expect(all.edges.at(-1)?.props).toMatchObject({ rate: "5" });
    expect(all.truncated).toBe(false);
    const some = await part(`/${name}/overview?limit=2`);
    expect([idsOf(some), linesOf(some), some.truncated]).toEqual([["web", "bus"], ["web sends bus"], true]);
    const blue = await part(`/${name}/overview?realm=blue`);
    expect([idsOf(blue).toSorted(), linesOf(blue)]).toEqual([["db", "web"], ["web reads db"]]);
  });

  test("gives a node whole, and cut off among others", async () => {
    const whole = (await ask(`/${name}/nodes/bus`)) as Node;
    expect(whole).toMatchObject({ id: "bus", labels: ["queue"], realm: "green", props: { owner: "Bob" } });
    expect(whole.props["about"]).toHaveLength(1_000);
    const [brief] = (await part(`/${name}/nodes/bus/subgraph?depth=0`)).nodes;
    expect(brief?.props["about"]).toBe(`${"x".repeat(299)}…`);
    expect(((await ask(`/${name}/nodes/old`)) as Node).labels).toEqual(["retired"]);
    expect(await refusal(`/${name}/nodes/gone`)).toEqual([
      404,
      "not_found",
      `there is no node "gone" in the graph ${name}`,
    ]);
  });

  test("goes along edges, against them, or either", async () => {
    const go = async (body: Json) => linesOf(await part(`/${name}/neighbors`, { body }));
    expect(await go({ node_ids: ["bus"] })).toEqual(["bus writes db", "web sends bus"]);
    expect(await go({ node_ids: ["bus"], direction: "forward" })).toEqual(["bus writes db"]);
    expect(await go({ node_ids: ["bus"], direction: "backward" })).toEqual(["web sends bus"]);
    expect(await go({ node_ids: ["bus", "db"], only_internal: true })).toEqual(["bus writes db"]);
    const one = await part(`/${name}/neighbors`, { body: { node_ids: ["web", "nobody"], limit: 1 } });
    expect([idsOf(one), linesOf(one), one.truncated]).toEqual([["web", "bus"], ["web sends bus"], true]);
  });

  test("is searched by words and labels, in pages", async () => {
    const search = async (body: Json) => {
      const { nodes, total } = (await ask(`/${name}/search`, { body })) as { nodes: Node[]; total: number };
      return [idsOf({ nodes }), total];
    };
    expect(await search({ text: "ANN web" })).toEqual([["web"], 1]);
    expect(await search({ text: "o'hara" })).toEqual([["db"], 1]);
    expect(await search({ labels: ["queue", "retired"] })).toEqual([["old", "bus"], 2]);
    expect(await search({ text: "", limit: 1, offset: 1 })).toEqual([[expect.any(String)], 4]);
    expect(await search({ text: "", offset: 4 })).toEqual([[], 4]);
    expect(await search({ text: "service", realm: "blue" })).toEqual([["db", "web"], 2]);
    expect(await search({ text: "%" })).toEqual([[], 0]);
  });

  test("refuses what is out of range, and what there is not", async () => {
    expect((await refusal(`/nothing/stats`)).slice(0, 2)).toEqual([404, "not_found"]);
    expect((await refusal(`/${name}/stats`, { database: "team" })).slice(0, 2)).toEqual([404, "not_found"]);
    expect((await refusal(`/${name}/stats`, { database: "none" })).slice(0, 2)).toEqual([404, "database_not_found"]);
    for (const path of [
      `/${name}/overview?limit=0`,
      `/${name}/overview?limit=5001`,
      `/${name}/nodes/web/subgraph?depth=6`,
    ])
      expect((await refusal(path)).slice(0, 2)).toEqual([400, "invalid_parameter"]);
    for (const body of [
      { node_ids: [] },
      { node_ids: ["a"], direction: "up" },
      { node_ids: ["a"], limit: 20_001 },
      { node_ids: Array.from({ length: 501 }, (_, i) => String(i)) },
      { node_ids: ["\0"] },
      { node_ids: ["a"], more: 1 },
    ])
      expect((await refusal(`/${name}/neighbors`, { body })).slice(0, 2)).toEqual([400, "bad_request_body"]);
    for (const body of [{ limit: 501 }, { offset: -1 }, { text: "x".repeat(513) }])
      expect((await refusal(`/${name}/search`, { body })).slice(0, 2)).toEqual([400, "bad_request_body"]);
  });

  test("says that a table is gone", async () => {
    const gone = await newGraph([{ id: "a", labels: "l" }], [{ src: "a", dst: "a", type: "t" }]);
    await services.json("root", "DELETE", `/v1/catalog/tables/${gone}-edges`);
    expect(await refusal(`/${gone}/stats`)).toEqual([
      404,
      "table_not_found",
      `table "default.${gone}-edges" does not exist`,
    ]);
  });
});

test("columns may have any type", async () => {
  const create = (name: string, schema: string) => engine("create-table", "--name", name, "--schema", schema);
  await create("typed-nodes", "id:long, labels:dynamic, realm:dynamic, more:dynamic, n:long, v:vector(2)");
  await create("typed-edges", "src:long, dst:dynamic, type:bool");
  const big = "9007199254740993";
  const rows = [
    `{"id":1,"labels":"one","realm":"r","more":{"a":["x"]},"n":${big},"v":[1,2]}`,
    `{"id":2,"labels":["two","zwei"],"realm":null,"more":"text","v":[1,2]}`,
    `{"id":3,"labels":null,"more":null,"v":[1,2]}`,
  ];
  for (const [table, body] of [
    ["typed-nodes", rows.join("\n")],
    ["typed-edges", '{"src":1,"dst":"2","type":true}\n{"src":1,"dst":3}'],
  ] as const)
    expect((await services.send("ann", "POST", "/v1/ingest", body, { "X-Table": table })).status).toBe(200);
  const tables = ["--nodes", "typed-nodes", "--edges", "typed-edges", "--realm-col", "realm"];
  expect((await engine("create-graph", "--name", "typed", ...tables)).stderr).toBe("");
  const { nodes, edges } = await part("/typed/nodes/1/subgraph");
  expect(nodes.map(({ id, labels, realm, props: { at: _at, ...props } }) => ({ id, labels, realm, props }))).toEqual([
    { id: "1", labels: ["one"], realm: "r", props: { more: { a: ["x"] }, n: big } },
    { id: "2", labels: ["two", "zwei"], realm: null, props: { more: "text" } },
    { id: "3", labels: [], realm: null, props: {} },
  ]);
  expect(edges.map(({ src, type, dst }) => [src, type, dst])).toEqual([
    ["1", "true", "2"],
    ["1", "", "3"],
  ]);
  expect(await ask("/typed/stats?realm=r")).toEqual({ nodes: 1, edges: 0 });
});

test("names of columns and values are never a part of a query", async () => {
  const hostile = [
    `a' OR '1'='1`,
    `a"; DROP TABLE x; --`,
    `$ids`,
    `?`,
    `{"a":1}`,
    `["x"`,
    `[1,{"a":[]}]`,
    `\\'`,
    `a/*`,
    `%_`,
    `ünï ∞ 你好 🙂`,
    `a/b?c#d%2e%2e`,
    `..`,
  ];
  const column = `i"d'); SELECT 1; --`;
  const name = await newGraph(
    hostile.map((id) => ({ [column]: id, labels: id, say: id })),
    hostile.map((id) => ({ src: id, dst: hostile[0], type: id })),
    "--id-col",
    column,
  );
  for (const id of hostile) {
    const found = await part(`/${name}/neighbors`, { body: { node_ids: [id], direction: "forward" } });
    expect([idsOf(found), found.edges.map(({ type }) => type)]).toEqual([[...new Set([id, hostile[0]])], [id]]);
    const { nodes } = (await ask(`/${name}/search`, { body: { text: id, limit: 500 } })) as { nodes: Node[] };
    expect(idsOf({ nodes })).toContain(id);
    if (id === "..") continue;
    expect((await ask(`/${name}/nodes/${encodeURIComponent(id)}`))["id"]).toBe(id);
  }
  const labels = (await ask(`/${name}/schema`))["labels"] as { name: string }[];
  // What is a JSON array is one, whatever is in it.
  const plain = hostile.filter((id) => id !== `[1,{"a":[]}]`);
  expect(labels.map((label) => label.name)).toEqual(expect.arrayContaining(plain));
});

test("what is around a node is what a walk by hand finds", async () => {
  const ids = Array.from({ length: 12 }, (_, i) => `n${i}`);
  const end = fc.constantFrom(...ids);
  const drawn = fc.array(fc.tuple(end, end), { minLength: 1, maxLength: 24 });
  await fc.assert(
    fc.asyncProperty(drawn, end, fc.integer({ min: 0, max: 5 }), async (pairs, from, depth) => {
      const edges = [...new Set(pairs.map(([src, dst]) => `${src} e ${dst}`))];
      const name = await newGraph(
        ids.map((id) => ({ id, labels: "l" })),
        pairs.map(([src, dst]) => ({ src, dst, type: "e" })),
      );
      const reached = new Set([from]);
      for (let step = 0; step < depth; step++) {
        const near = pairs.filter(([src, dst]) => reached.has(src) || reached.has(dst));
        for (const id of near.flat()) reached.add(id);
      }
      const found = await part(`/${name}/nodes/${from}/subgraph?depth=${depth}`);
      expect(found.nodes[0]?.id).toBe(from);
      expect(new Set(idsOf(found))).toEqual(reached);
      const among = edges.filter((line) => line.split(" e ").every((id) => reached.has(id)));
      expect(linesOf(found).toSorted()).toEqual(among.toSorted());
      expect(found.truncated).toBe(false);
    }),
    { numRuns: 6 },
  );
});

describe("the graph of the catalog", () => {
  test("has databases, tables, columns and graphs", async () => {
    const name = await newGraph([{ id: "a", labels: "l" }], [{ src: "a", dst: "a", type: "t" }]);
    const table = `table:default.${name}-nodes`;
    const around = await part(`/schema/nodes/${encodeURIComponent(table)}/subgraph?depth=1`);
    expect(linesOf(around)).toEqual(
      expect.arrayContaining([
        `database:default has_table ${table}`,
        `${table} has_column column:default.${name}-nodes.labels`,
        `graph:default.${name} has_nodes ${table}`,
      ]),
    );
    const found = (await ask("/schema/search", { body: { text: `${name}-nodes labels`, labels: ["column"] } }))[
      "nodes"
    ];
    expect(found).toMatchObject([{ id: `column:default.${name}-nodes.labels`, props: { type: "string" } }]);
    const { labels } = (await ask("/schema/schema")) as { labels: { name: string }[] };
    expect(labels.map((label) => label.name).toSorted()).toEqual(["column", "database", "graph", "table"]);
  });

  test("shows nobody databases that are not theirs", async () => {
    const seen = await part("/schema/overview", { who: "scoped", database: "team" });
    expect(idsOf(seen)).toContain("database:team");
    expect(JSON.stringify(seen)).not.toContain("default");
    expect((await refusal("/schema/stats", { who: "scoped" })).slice(0, 2)).toEqual([403, "forbidden"]);
    expect((await refusal("", { who: "scoped" })).slice(0, 2)).toEqual([403, "forbidden"]);
  });
});

describe("the graph of the memory", () => {
  const save = async (who: Who, memory_nodes: Json[], memory_edges: Json[] = []) => {
    const saved = await services.json(who, "POST", "/v1/agent/memory/import", { memory_nodes, memory_edges });
    expect([saved.httpStatus, saved["error"]]).toEqual([200, undefined]);
  };

  test("has memories, entities, and links into other graphs", async () => {
    const gateway = entityId("default", "service", "gateway");
    await save(
      "ann",
      [
        { id: "m-port", content: "The gateway listens on port 8443", memory_type: "fact", tags: ["net"] },
        { kind: "entity", entity_kind: "service", name: "gateway" },
        { id: "m-old", content: "The gateway listens on port 80" },
      ],
      [
        { src: "m-port", dst: gateway, rel: "about", weight: 2 },
        { src: gateway, dst: "table:default.requests", namespace: "schema", rel: "fills" },
        { src: "m-old", dst: gateway, rel: "about" },
      ],
    );
    await services.json("ann", "POST", "/v1/agent/memory/nodes/m-old/invalidate", {});
    const around = await part(`/memory/nodes/${gateway}/subgraph`);
    expect(linesOf(around)).toEqual([`${gateway} fills schema/table:default.requests`, `m-port about ${gateway}`]);
    expect(around.nodes).toMatchObject([
      { id: gateway, labels: ["entity", "service"], realm: "default", props: { name: "gateway" } },
      { id: "schema/table:default.requests", labels: ["elsewhere"], props: { graph: "schema" } },
      {
        id: "m-port",
        labels: ["memory", "fact"],
        props: { content: "The gateway listens on port 8443", tags: ["net"] },
      },
    ]);
    expect(around.edges[1]?.props).toEqual({ weight: 2 });
    expect((await refusal("/memory/nodes/m-old")).slice(0, 2)).toEqual([404, "not_found"]);
    const search = (await ask("/memory/search", { body: { text: "gateway port" } })) as {
      nodes: Node[];
      total: number;
    };
    expect([idsOf(search), search.total]).toEqual([["m-port"], 1]);
    expect(idsOf(await part("/memory/overview?limit=1"))).toEqual([gateway]);
    const words = (await ask("/memory/schema")) as { edge_types: unknown };
    expect(words.edge_types).toEqual([
      { name: "about", count: 2 },
      { name: "fills", count: 1 },
    ]);
    expect(await ask("/memory/stats")).toEqual({ nodes: 2, edges: 3 });
    const back = await part("/memory/neighbors", { body: { node_ids: [gateway], direction: "backward" } });
    expect(linesOf(back)).toEqual([`m-port about ${gateway}`]);
  });

  test("shows nobody the realms of others", async () => {
    const { subject } = await services.json("ann", "GET", "/v1/auth/me");
    const realm = `user:${String(subject)}`;
    const mine = { id: "m-mine", content: "Ann keeps a zebrafish", realm };
    await save("ann", [mine, { id: "m-yours", content: "Everybody keeps a goldfish" }]);
    await save("ann", [], [{ src: "m-mine", dst: "m-yours", realm }]);
    const seenBy = async (who: Who) => {
      const body = { node_ids: ["m-mine", "m-yours"] };
      const near = await part("/memory/neighbors", { who, body });
      const search = (await ask("/memory/search", { who, body: { text: "keeps fish" } })) as { nodes: Node[] };
      const all = await part("/memory/overview?limit=5000", { who });
      return [idsOf(near), near.edges.length, idsOf(search).toSorted(), idsOf(all).includes("m-mine")];
    };
    expect(await seenBy("ann")).toEqual([["m-mine", "m-yours"], 1, ["m-mine", "m-yours"], true]);
    expect(await seenBy("bob")).toEqual([["m-yours"], 0, ["m-yours"], false]);
    expect((await refusal("/memory/nodes/m-mine", { who: "bob" })).slice(0, 2)).toEqual([404, "not_found"]);
  });
});

describe("commands", () => {
  test("check tables and columns, and suggest what was meant", async () => {
    await store("people", [{ email: "a@b", role: "dev" }]);
    await store("knows", [{ from: "a@b", to: "a@b", how: "well" }]);
    const create = (...flags: string[]) => engine("create-graph", "--name", "crm", ...flags);
    const tables = ["--nodes", "people", "--edges", "knows"];
    expect((await create("--nodes", "peple", "--edges", "knows")).stderr).toContain("did you mean people?");
    expect((await create(...tables, "--id-col", "emial")).stderr).toContain("did you mean --id-col email?");
    expect((await create(...tables)).stderr).toContain("has no column id; name one with --id-col: at, ");
    for (const name of ["schema", "MEMORY"])
      expect(await engine("create-graph", "--name", name, ...tables)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("is reserved"),
      });
    const columns = [
      "--id-col",
      "EMAIL",
      "--label-col",
      "role",
      "--src-col",
      "from",
      "--dst-col",
      "to",
      "--type-col",
      "how",
    ];
    const made = await create(...tables, ...columns);
    expect([made.stdout, made.stderr]).toEqual(["graph default.crm created: nodes people, edges knows\n", ""]);
    expect((await create(...tables, ...columns)).stdout).toContain("exists already");
    expect((await create(...tables, ...columns, "--description", "x")).stderr).toContain("`engine drop-graph`");
    expect(linesOf(await part("/crm/overview"))).toEqual(["a@b well a@b"]);
    expect((await engine("drop-graph", "--name", "crn")).stderr).toContain("did you mean crm?");
    expect((await engine("drop-graph", "--name", "crm")).code).toBe(0);
    expect((await refusal("/crm/stats"))[0]).toBe(404);
  });
});

test("tools show what the routes do", async () => {
  const name = await newGraph(
    [
      { id: "a", labels: "l" },
      { id: "b", labels: "l" },
    ],
    [{ src: "a", dst: "b", type: "t" }],
  );
  const client = await mcpClient(services.url, { era: "2026-07-28", token: services.tokens.get("reader") });
  try {
    const listed = (await called(client, "list_graphs"))["graphs"] as { name: string }[];
    expect(listed.map((graph) => graph.name)).toEqual(expect.arrayContaining(["schema", "memory", name]));
    expect(await called(client, "graph_search", { graph: name, text: "b" })).toMatchObject({
      nodes: [{ id: "b" }],
      total: 1,
    });
    const near = await called(client, "graph_neighbors", { graph: name, node_ids: ["a"] });
    expect(near).toMatchObject({ nodes: [{ id: "a" }, { id: "b" }], edges: [{ src: "a", dst: "b", type: "t" }] });
    const around = await called(client, "graph_subgraph", { graph: name, node_id: "b", depth: 1 });
    expect(around).toMatchObject({ nodes: [{ id: "b" }, { id: "a" }] });
  } finally {
    await client.close();
  }
});
