import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Remembering } from "../api/recall.test-kit.ts";
import { CalledServices, type Json } from "../api/services.test-kit.ts";

/**
 * Records of memories as only an attacker, or a broken client, writes them: each is refused, or stored as it was said, and comes back
 * the same by every way. None is answered by a failure of the server, and none brings another realm's records.
 */
type Who = "ann" | "bob" | "root" | "scoped";

let services: CalledServices<Who>;
let ann: Remembering;
let bob: Remembering;
const realms = { ann: "", bob: "" };

beforeAll(async () => {
  services = await CalledServices.start<Who>([
    ["ann", "write"],
    ["bob", "write"],
    ["root", "admin"],
  ]);
  ann = Remembering.of(services, "ann");
  bob = Remembering.of(services, "bob");
  for (const who of ["ann", "bob"] as const) {
    const { subject } = await services.json(who, "GET", "/v1/auth/me");
    realms[who] = `user:${String(subject)}`;
  }
  await services.json("root", "POST", "/v1/admin/databases/team/tables/t");
  await services.limit("scoped", "write", ["team"], "root");
});
afterAll(() => services.close());

let made = 0;
const newId = () => `hostile-${++made}`;

const IN_JSON = { "Content-Type": "application/json", "X-Database": "default" };

/** A memory of ann's of which a body of JSON says `fields`, as they stand there. */
async function save(fields: string): Promise<{ id: string; status: number }> {
  const id = newId();
  const body = `{"memory_nodes":[{"id":"${id}","content":"hostile text",${fields}}]}`;
  const { status } = await services.send("ann", "POST", "/v1/agent/memory/import", body, IN_JSON);
  return { id, status };
}

async function textOf(path: string): Promise<string> {
  const answer = await services.send("ann", "GET", path, undefined, { "X-Database": "default" });
  expect(answer.status).toBe(200);
  return await answer.text();
}

/** What reads all memories goes on, whatever is among them. */
async function readsGoOn(): Promise<void> {
  for (const path of ["export", "changes", "overview"]) await textOf(`/v1/agent/memory/${path}`);
  expect((await ann.ask("POST", "query", { query: "hostile text", limit: 100 })).httpStatus).toBe(200);
  const sql = "SELECT sum(length(props) + length(content)) AS n FROM system.memory_nodes";
  const answer = await services.send("ann", "POST", "/v1/query", sql, { "X-Database": "default" });
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"n"')]);
}

const times = (count: number, text: string) => text.repeat(count);
const nested = (levels: number) => `"props":{"a":${times(levels, "[")}${times(levels, "]")}}`;

const KEPT: Record<string, string> = {
  "marks that turn text around, and marks that are not seen": String.raw`"content":"a\u202eb\u2066c\u200b\u00ad"`,
  "16 KiB of one byte each": `"content":"${times(16_384, "x")}"`,
  "16 KiB of two bytes each": `"content":"${times(8_192, "é")}"`,
  "16 KiB of four bytes each": `"content":"${times(4_096, "😀")}"`,
  "a name of 500 characters": `"name":"${times(500, "é")}"`,
  "NUL in a property": String.raw`"props":{"a":"x\u0000y"}`,
  "NUL in the name of a property": String.raw`"props":{"a\u0000":1}`,
  "half a pair in a property": String.raw`"props":{"a":"x\ud800y"}`,
  "half a pair in the name of a property": String.raw`"props":{"\udc00":1}`,
  "150 levels": nested(150),
  "names of what all objects have": '"props":{"constructor":{"prototype":{"x":1}},"toString":1,"hasOwnProperty":null}',
  "the ends of numbers": '"props":{"a":1.7976931348623157e308,"b":5e-324,"c":9007199254740991,"d":-1e300}',
  "tags of what all objects have": '"tags":["constructor","__proto__","toString"]',
  "a type that all objects have": '"memory_type":"constructor"',
  "a realm that all objects have": '"realm":"__proto__"',
};

const REFUSED: Record<string, string> = {
  "NUL in a text": String.raw`"content":"a\u0000b"`,
  "half a pair in a text": String.raw`"content":"a\ud800b"`,
  "half a pair in a name": String.raw`"name":"a\ud800b"`,
  "one byte more": `"content":"${times(16_384, "x")}y"`,
  "one byte more than two bytes each": `"content":"${times(8_192, "é")}y"`,
  "one byte more than four bytes each": `"content":"${times(4_096, "😀")}y"`,
  "a name of 501 characters": `"name":"${times(501, "é")}"`,
  "properties of more than 16 KiB": `"props":{"a":"${times(16_384, "x")}"}`,
  "8,000 levels": nested(8_000),
  "30,000 levels": nested(30_000),
  "__proto__ in properties": '"props":{"__proto__":{"role":"admin"}}',
  "__proto__ deep in properties": '"props":{"a":[{"__proto__":{"role":"admin"}}]}',
  "a number that is none any more": '"props":{"a":[1e400]}',
  "a whole number that would be another": '"props":{"a":{"b":9007199254740993}}',
  "importance without end": '"importance":1e400',
  "a time after all": '"valid_from":"+275760-09-13T00:00:00Z"',
  "a time before all": '"valid_from":"0000-01-01T00:00:00Z"',
  "a realm that looks like a user's, with nothing seen before it": String.raw`"realm":"\u200buser:bob"`,
  "with nothing seen in it": String.raw`"realm":"us\u2060er:bob"`,
  "with a hyphen that is not seen": String.raw`"realm":"user\u00ad:bob"`,
  "turned around": String.raw`"realm":"\u202euser:bob"`,
};

describe("a record", () => {
  test.each(Object.entries(KEPT))("with %s is stored as it is said", async (_name, fields) => {
    const { id, status } = await save(fields);
    expect(status).toBe(200);
    const said = JSON.parse(`{${fields}}`) as Json;
    expect(await ann.done("GET", `nodes/${id}`)).toMatchObject(said);
    const exported = JSON.parse(await textOf("/v1/agent/memory/export")) as { memory_nodes: Json[] };
    expect(exported.memory_nodes.find((node) => node["id"] === id)).toMatchObject(said);
    await readsGoOn();
  });

  test.each(Object.entries(REFUSED))("with %s is refused", async (_name, fields) => {
    const { id, status } = await save(fields);
    expect(status).toBe(400);
    expect((await ann.ask("GET", `nodes/${id}`)).httpStatus).toBe(404);
  });
});

describe("the id of another's record", () => {
  test("of a private realm is to a caller like one that is not there, and changes nothing of it", async () => {
    const id = newId();
    const record = { id, content: "what only bob knows", realm: realms.bob };
    await bob.save([record]);
    const before = await bob.done("GET", `nodes/${id}`);
    const outline = async (asked: string, method: string, path: string, body?: unknown) => {
      const answer = await ann.ask(method, path.replace("ID", asked), body);
      return JSON.stringify(answer)
        .replaceAll(asked, "ID")
        .replace(/"request_id":"[^"]*"/, "");
    };
    const asks: [method: string, path: string, body?: unknown][] = [
      ["GET", "nodes/ID"],
      ["GET", "nodes/ID?history=true"],
      ["POST", "nodes/ID/invalidate", {}],
      ["POST", "nodes/ID/restore"],
      ["DELETE", "nodes/ID"],
    ];
    for (const ask of asks) expect([ask, await outline(id, ...ask)]).toEqual([ask, await outline("nobodys", ...ask)]);
    const mine = newId();
    await ann.save([{ id: mine, content: "what ann knows" }]);
    const imports = [
      { memory_nodes: [{ id, content: "taken over" }] },
      { memory_nodes: [{ id, content: "taken over", realm: realms.ann }] },
      { memory_nodes: [{ id, content: "taken over", realm: realms.bob }] },
      { memory_edges: [{ src: mine, dst: id }] },
      { tombstones: [{ id, erased_at: "2100-01-01T00:00:00Z" }] },
      { tombstones: [{ id, erased_at: "2100-01-01T00:00:00Z", realm: realms.bob }] },
    ];
    for (const body of imports) {
      const answer = await ann.ask("POST", "import", body);
      expect([200, 400, 403, 404]).toContain(answer.httpStatus);
      expect(JSON.stringify(answer)).not.toContain("only bob");
    }
    expect(await bob.done("GET", `nodes/${id}`)).toEqual(before);
    expect((await bob.done("GET", `nodes/${id}?history=true`))["history"]).toHaveLength(1);
    for (const path of ["export", "changes"])
      expect(await textOf(`/v1/agent/memory/${path}`)).not.toContain("only bob");
    const found = await ann.recall("what does bob know, and what ann?", { expand_hops: 3, limit: 100 });
    expect(JSON.stringify(found)).not.toContain("only bob");
  });

  test("of another database is not there", async () => {
    const id = newId();
    await ann.save([{ id, content: "of the default database" }]);
    const team = Remembering.of(services, "scoped", "team");
    const mine = newId();
    await team.save([{ id: mine, content: "of the team" }]);
    expect((await team.ask("GET", `nodes/${id}`)).httpStatus).toBe(404);
    expect((await team.ask("DELETE", `nodes/${id}`)).httpStatus).toBe(404);
    const linked = async (dst: string) => await team.done("POST", "import", { memory_edges: [{ src: mine, dst }] });
    expect(await linked(id)).toEqual(await linked("nobodys"));
    expect((await team.recall("of the team", { expand_hops: 3 })).memories.map((found) => found.id)).toEqual([mine]);
    // The same id there is another record.
    await team.save([{ id, content: "of the team, with that id" }]);
    expect(await ann.done("GET", `nodes/${id}`)).toMatchObject({ content: "of the default database", version: 1 });
  });
});
