import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { startServices } from "../edge/run.test-kit.ts";
import { temporaryHome } from "../support/engine.ts";
import { everyCategory, Remembering, type Found, type Recalled } from "./recall.test-kit.ts";
import { CalledServices, type Json } from "./services.test-kit.ts";

type Who = "ann" | "bob" | "root" | "reader" | "scoped";

let services: CalledServices<Who>;
let ann: Remembering;
let bob: Remembering;
let root: Remembering;
/** The realms of ann and bob. */
const realms = { ann: "", bob: "" };

beforeAll(async () => {
  services = await CalledServices.start<Who>([
    ["ann", "write"],
    ["bob", "write"],
    ["root", "admin"],
    ["reader", "read"],
  ]);
  ann = Remembering.of(services, "ann");
  bob = Remembering.of(services, "bob");
  root = Remembering.of(services, "root");
  for (const who of ["ann", "bob"] as const) {
    const { subject } = await services.json(who, "GET", "/v1/auth/me");
    realms[who] = `user:${String(subject)}`;
  }
  await services.json("root", "POST", "/v1/admin/databases/team/tables/t");
  await services.limit("scoped", "write", ["team"], "root");
});
afterAll(() => services.close());

/** A word that no other test has, of one part. */
let made = 0;
const word = () => `z${String(++made).replaceAll(/\d/g, (digit) => "bcdfghjklm"[Number(digit)] ?? "")}x`;

const metrics = async () => await (await fetch(`${services.url}/metrics`)).text();
const indexOf = async (memory: Remembering) => (await memory.done("GET", "overview"))["index"] as Json;

describe("a server that nobody has asked", () => {
  test("has no index and tells nothing of one, whatever is saved", async () => {
    await ann.save(["The first memory of all"]);
    expect(await indexOf(ann)).toEqual({ state: "none", commits: 0, size_bytes: 0 });
    expect(await metrics()).not.toMatch(/^engine_memory_index_bytes/m);
    expect(await ann.texts("which was the first memory?")).toEqual(["The first memory of all"]);
    expect(await indexOf(ann)).toMatchObject({ state: "ready", commits: 1 });
    expect(await metrics()).toMatch(/^engine_memory_index_bytes \d{4,}$/m);
    expect(await metrics()).toMatch(/^engine_memory_recall_duration_seconds_count 1$/m);
  });
});

describe("recall", () => {
  test("finds what was saved before, at once, however quickly it follows", async () => {
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let i = 0; i < 5; i++) {
          const name = word();
          await ann.save([`The door of ${name} is blue`]);
          expect(await ann.texts(name)).toEqual([`The door of ${name} is blue`]);
        }
      }),
    );
  });

  test("answers with all fields, scores and what they are made of", async () => {
    const name = word();
    await ann.save([
      { content: `${name} runs on port 8080`, memory_type: "fact", tags: ["ports"], importance: 0.9 },
      { kind: "entity", entity_kind: "service", name: `${name} gateway`, content: "a service" },
    ]);
    const { memories, entities, edges, as_of, httpStatus: _, ...rest } = await ann.recall(`${name} port?`);
    expect(rest).toEqual({});
    expect(memories).toHaveLength(1);
    expect(memories[0]).toMatchObject({
      kind: "memory",
      realm: "default",
      memory_type: "fact",
      tags: ["ports"],
      importance: 0.9,
      version: 1,
      trust: "stated",
      invalidated_at: null,
      score: expect.any(Number),
    });
    const parts = memories[0]?.score_parts ?? {};
    expect(Object.keys(parts)).toEqual([
      "lexical",
      "vector",
      "entity",
      "fused",
      "graph",
      "rerank",
      "importance",
      "age",
    ]);
    const { fused = 0, graph = 0, importance = 0, age = 0 } = parts;
    expect(memories[0]?.score).toBeCloseTo((fused + graph) * importance * age, 4);
    expect(entities.map(({ name: its }) => its)).toEqual([`${name} gateway`]);
    expect(edges).toEqual([]);
    expect(Math.abs(Date.parse(as_of) - Date.now())).toBeLessThan(60_000);
  });

  test("follows the edges of what it finds, as far as it is told", async () => {
    const [a, b, c] = [word(), word(), word()];
    const nodes = [a, b, c].map((name) => ({ id: name, content: `about ${name}` }));
    // What else an edge holds is no field of it.
    const props = {
      weight: 0,
      validToUs: 1,
      'quo"ted\\': '\\","weight":0,"validToUs":1',
      nested: [{ weight: 0 }, "}"],
    };
    await ann.save(nodes, [
      { src: a, dst: b, rel: "follows", props },
      { src: b, dst: c, rel: "follows", props },
    ]);
    const found = async (hops?: number) => (await ann.recall(a, { expand_hops: hops })).memories.map(({ id }) => id);
    expect(await found(0)).toEqual([a]);
    expect(await found()).toEqual([a, b]);
    expect(await found(2)).toEqual([a, b, c]);
    const { edges } = await ann.recall(a, { expand_hops: 3 });
    expect(edges.map(({ src, dst, rel }) => [src, dst, rel])).toEqual([
      [a, b, "follows"],
      [b, c, "follows"],
    ]);
  });

  test("finds memories by the entity that is named, and tells of it", async () => {
    const name = word();
    const linked = word();
    await ann.save([
      { kind: "entity", entity_kind: "service", name: `Blue ${name}` },
      { id: linked, content: "Its owner is the data team" },
    ]);
    const [entity] = (await ann.recall(`Blue ${name}`)).entities;
    await ann.save([], [{ src: linked, dst: entity?.id, rel: "about" }]);
    const { memories, entities, edges } = await ann.recall(`who has BLUE ${name}?`, { expand_hops: 0 });
    expect(memories[0]).toMatchObject({ id: linked, score_parts: { lexical: 0, entity: expect.any(Number) } });
    expect(entities.map(({ name: its }) => its)).toEqual([`Blue ${name}`]);
    expect(edges).toHaveLength(1);
  });

  test("chooses by type, tags, importance and realm", async () => {
    const name = word();
    const say = (content: string, more: Json) => ({ content: `${name} ${content}`, ...more });
    await ann.save([
      say("one", { memory_type: "fact", tags: ["x", "y"], importance: 0.2 }),
      say("two", { memory_type: "decision", tags: ["x"], importance: 0.8 }),
      say("three", { realm: "project:p", importance: 0.5 }),
    ]);
    const found = async (more: Json) => {
      const texts = await ann.texts(name, more);
      return texts.map((text) => text.replace(`${name} `, "")).toSorted();
    };
    expect(await found({})).toEqual(["one", "three", "two"]);
    expect(await found({ memory_type: "fact" })).toEqual(["one"]);
    expect(await found({ memory_type: "procedure" })).toEqual([]);
    expect(await found({ tags: ["x"] })).toEqual(["one", "two"]);
    expect(await found({ tags: ["x", "y"] })).toEqual(["one"]);
    expect(await found({ tags: ["z"] })).toEqual([]);
    expect(await found({ importance_min: 0.5 })).toEqual(["three", "two"]);
    expect(await found({ realms: ["project:p"] })).toEqual(["three"]);
    expect(await found({ realms: ["project:p", "default"] })).toEqual(["one", "three", "two"]);
    expect(await found({ realms: ["project:q"] })).toEqual([]);
    expect((await found({ limit: 1 })).length).toBe(1);
    expect(await found({ memory_type: null, importance_min: null, as_of: null, limit: null })).toHaveLength(3);
  });

  test("leaves out what says the same as a better one, and no other numbers", async () => {
    const name = word();
    const text = (port: number) => `The service ${name} of the data team listens on port ${port} since last spring`;
    await ann.save([text(8080), `${text(8080)}!`, text(8081)]);
    expect(await ann.texts(name)).toHaveLength(2);
    // However many there are.
    const many = word();
    await ann.save([
      ...Array.from({ length: 60 }, (_, i) => `${many} stands on the hill${".".repeat(i)}`),
      `${many} lies in a valley that nobody has seen for years`,
    ]);
    expect(await ann.texts(many, { limit: 20 })).toHaveLength(2);
  });

  test("takes what is not said from the settings of the memory", async () => {
    const name = word();
    const ids = [word(), word()];
    const nodes = Array.from({ length: 12 }, (_, i) => ({ content: `${name} number ${i}`, importance: 1 - i / 100 }));
    await ann.save([...nodes, ...ids.map((id) => ({ id, content: `about ${id}` }))], [{ src: ids[0], dst: ids[1] }]);
    expect(await ann.texts(name)).toHaveLength(10);
    await ann.done("PUT", "settings", { recall: { limit: 3, expand_hops: 0 } });
    expect(await ann.texts(name)).toHaveLength(3);
    expect(await ann.texts(name, { limit: 11 })).toHaveLength(11);
    expect(await ann.texts(ids[0] ?? "")).toHaveLength(1);
    expect(await ann.texts(ids[0] ?? "", { expand_hops: 1 })).toHaveLength(2);
    await ann.done("PUT", "settings", {});
    expect(await ann.texts(ids[0] ?? "")).toHaveLength(2);
  });

  test("says why there is no brief, and tells nothing of one that nobody asked for", async () => {
    const name = word();
    await ann.save([`${name} is "quoted"`]);
    const { brief, brief_error, memories } = await ann.recall(name, { mode: "agentic" });
    expect([brief, brief_error]).toEqual([null, expect.stringContaining("the agent has no engine")]);
    expect(memories).toHaveLength(1);
    expect(await ann.recall(name, { mode: "fast" })).not.toHaveProperty("brief");
  });
});

describe("what does not hold any more", () => {
  test("is found where it is asked for, until it is erased", async () => {
    const id = word();
    await ann.save([{ id, content: `The key of ${id} is under the mat` }]);
    const found = async (more: Json = {}) => (await ann.texts(id, more)).length;
    expect(await found()).toBe(1);
    await ann.done("POST", `nodes/${id}/invalidate`, { reason: "it is not" });
    expect([await found(), await found({ include_invalidated: true })]).toEqual([0, 1]);
    await ann.done("POST", `nodes/${id}/restore`);
    expect(await found()).toBe(1);
    await ann.done("DELETE", `nodes/${id}`);
    const long = "2020-01-01T00:00:00Z";
    for (const more of [{}, { include_invalidated: true }, { as_of: long }, { known_at: "2100-01-01T00:00:00Z" }]) {
      expect([more, await found(more)]).toEqual([more, 0]);
    }
    // The same id may be used again.
    await ann.save([{ id, content: `The key of ${id} is in the shed` }]);
    expect(await ann.texts(id)).toEqual([`The key of ${id} is in the shed`]);
  });

  test("held then, by what was known then", async () => {
    const name = word();
    const said = { topic_key: name };
    await ann.save([{ ...said, content: `${name} sails on Monday`, valid_from: "2024-01-01T00:00:00Z" }]);
    const { memories } = await ann.recall(name);
    const firstKnown = String(memories[0]?.["updated_at"]);
    await ann.save([{ ...said, content: `${name} sails on Tuesday`, valid_from: "2025-01-01T00:00:00Z" }]);
    const at = async (as_of?: string, known_at?: string) => await ann.texts(name, { as_of, known_at });
    expect(await at()).toEqual([`${name} sails on Tuesday`]);
    expect(await at("2024-06-01T00:00:00Z")).toEqual([`${name} sails on Monday`]);
    expect(await at("2024-06-01T01:00:00+02:00")).toEqual([`${name} sails on Monday`]);
    expect(await at("2023-12-31T23:59:59.999999Z")).toEqual([]);
    expect(await at("2025-06-01T00:00:00Z", firstKnown)).toEqual([`${name} sails on Monday`]);
    expect(await at(undefined, firstKnown)).toEqual([`${name} sails on Monday`]);
    expect(await at(undefined, "2024-06-01T00:00:00Z")).toEqual([]);
    expect((await ann.recall(name, { as_of: "2024-06-01T00:00:00Z" })).as_of).toBe("2024-06-01T00:00:00.000000Z");
  });

  test("holds from when and until when it says so", async () => {
    const name = word();
    // In a database of its own: what begins later has other questions of its realm look at former versions, too.
    const team = Remembering.of(services, "scoped", "team");
    await team.save([
      { content: `${name} opens`, valid_from: "2100-01-01T00:00:00Z" },
      { content: `${name} has closed`, valid_from: "2020-01-01T00:00:00Z", valid_to: "2021-01-01T00:00:00Z" },
    ]);
    expect(await team.texts(name)).toEqual([]);
    expect(await team.texts(name, { as_of: "2100-01-02T00:00:00Z" })).toEqual([`${name} opens`]);
    expect(await team.texts(name, { as_of: "2020-07-01T00:00:00Z" })).toEqual([`${name} has closed`]);
  });
});

describe("the memory of others", () => {
  /** What does not change with time: age does, a little, and with it the score. */
  const timeless = ({ memories, entities, edges }: Recalled) => {
    const ageless = ({ score_parts: parts, ...found }: Found) => ({ ...found, score: 0, parts: { ...parts, age: 0 } });
    return { memories: memories.map(ageless), entities: entities.map(ageless), edges };
  };

  test("changes nothing that a caller sees: no result, no score, no way over edges", async () => {
    const [a, b, far, name] = [word(), word(), word(), word()];
    await ann.save(
      [
        { id: a, content: `${name} is a harbour`, tags: ["x"] },
        { id: b, content: `${name} has a lighthouse and a long quay` },
        { id: far, content: "nothing in common" },
        // It has a former version with the same words.
        { topic_key: name, content: `the old harbour of ${name}` },
        { topic_key: name, content: `the harbour of ${name}, which was built anew` },
        { kind: "entity", entity_kind: "place", name: `Port ${name}` },
      ],
      [{ src: a, dst: b }],
    );
    const questions: Json[] = [{}, { expand_hops: 3 }, { include_invalidated: true, limit: 100 }, { tags: ["x"] }];
    const ask = async (who: Remembering) =>
      await Promise.all(
        questions.map(async (more) => timeless(await who.recall(`the harbour of Port ${name}?`, more))),
      );
    const before = await ask(ann);
    const realm = realms.bob;
    const secret = word();
    await bob.save(
      [
        { id: secret, realm, content: `${name} harbour harbour lighthouse: ${secret}`, tags: ["x"], importance: 1 },
        ...Array.from({ length: 40 }, (_, i) => ({ realm, content: `harbour ${i} lighthouse ${name}` })),
        { kind: "entity", entity_kind: "place", name: `Port ${name}`, realm, content: secret },
        // A name that has that of an entity of all within it, and a memory that begins later.
        { kind: "entity", entity_kind: "place", name: `the harbour of Port ${name}`, realm },
        { realm, content: `a new harbour of ${name}`, valid_from: "2100-01-01T00:00:00Z" },
      ],
      // From what all see, through what is bob's, to what all see.
      [
        { realm, src: a, dst: secret, weight: 1_000 },
        { realm, src: secret, dst: far, weight: 1_000 },
        { realm, src: a, dst: far, weight: 1_000 },
      ],
    );
    expect(await ask(ann)).toEqual(before);
    const reader = Remembering.of(services, "reader");
    expect(await ask(reader)).toEqual(before);
    // Those who may see it find it, and what lies behind it.
    for (const who of [bob, root]) {
      const found = await who.recall(`the harbour of Port ${name}?`, { expand_hops: 2, limit: 100 });
      expect(found.memories.map(({ id }) => id)).toEqual(expect.arrayContaining([a, secret, far]));
    }
    expect(await bob.texts(secret, { realms: [realm] })).not.toEqual([]);
    // Nor by a word that nobody else knows.
    for (const more of questions) expect((await ann.recall(secret, more)).memories).toEqual([]);
    expect(JSON.stringify(await ann.recall(`Port ${name} ${secret}`, { expand_hops: 3 }))).not.toContain(`: ${secret}`);
  });

  test("may not be asked for by name, however it is spelled", async () => {
    const status = async (realm: string) =>
      (await ann.ask("POST", "query", { query: "x", realms: [realm] })).httpStatus;
    expect(await status(realms.ann)).toBe(200);
    expect(await status(realms.bob)).toBe(403);
    expect(await status(` ${realms.bob} `)).toBe(403);
    // As much is said of nobody.
    expect(await status("user:nobody-at-all")).toBe(403);
    for (const realm of ["USER:bob", "user:", "ｕｓｅｒ:bob", "user :bob", "a\nb", " "]) {
      expect([realm, await status(realm)]).toEqual([realm, 400]);
    }
  });

  test("of other databases is out of reach of a token that is limited", async () => {
    const name = word();
    const scoped = Remembering.of(services, "scoped", "team");
    await ann.save([`${name} of all`]);
    await scoped.save([`${name} of the team`]);
    expect(await scoped.texts(name)).toEqual([`${name} of the team`]);
    expect(await ann.texts(name)).toEqual([`${name} of all`]);
    for (const database of ["default", "nothing", "TEAM2"]) {
      const elsewhere = Remembering.of(services, "scoped", database);
      expect([database, (await elsewhere.ask("POST", "query", { query: name })).httpStatus]).toEqual([database, 403]);
    }
    const missing = Remembering.of(services, "ann", "nothing");
    expect(await missing.ask("POST", "query", { query: name })).toMatchObject({
      httpStatus: 404,
      error: { code: "database_not_found" },
    });
  });
});

describe("hostile text", () => {
  const TEXTS: Record<string, string> = {
    "one letter": "a".repeat(8_192),
    "letters and capitals": "aB".repeat(4_096),
    "one endless identifier": "a-".repeat(4_096),
    apostrophes: "'s".repeat(4_096),
    "marks upon marks": `e${"\u0301".repeat(8_000)}`,
    "letters that grow when they are folded": "ﷺ".repeat(2_700),
    "one script without blanks": "東京".repeat(1_300),
    emoji: "👩‍👩‍👧‍👦".repeat(250),
    "control characters": Array.from({ length: 31 }, (_, i) => String.fromCharCode(i + 1)).join("x"),
    "text that turns around": "\u202eabc\u2066def\u2069\u200f",
    "every category": everyCategory(),
    "regular expressions": String.raw`.*+?^${"$"}{}()|[]\ (a+)+$ (?=x) [^] \p{L} a{1,99999} $& $1`,
    "statements of SQL": `'; DROP TABLE memory_records; -- " OR 1=1 ? ?? $1 NEAR("a" "b") AND NOT * content:x`,
    "names of JavaScript": "__proto__ constructor toString hasOwnProperty valueOf",
    JSON: String.raw`{"a":"b\u0000"} \u0000 \ud800 </script>`,
  };

  test.each(Object.entries(TEXTS))("is saved and found again: %s", async (_, text) => {
    const name = word();
    const content = `${name} ${text}`;
    await ann.save([{ content, tags: [name] }]);
    const found = await ann.recall(`${name} ${text}`.slice(0, 8_192), { tags: [name] });
    expect(found.memories.map((memory) => memory.content)).toEqual([content.trim()]);
    expect(found.memories[0]?.score).toBeGreaterThan(0);
    // Alone it is a question as good as any other.
    expect((await ann.ask("POST", "query", { query: text })).httpStatus).toBe(200);
  });

  test("of the greatest length costs little", async () => {
    const name = word();
    const longest = (text: string) => `${name} ${text.repeat(16_384)}`.slice(0, 16_384);
    await ann.save([longest("a"), longest("b "), longest("a1")]);
    const started = performance.now();
    expect(await ann.texts(name)).toHaveLength(3);
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});

describe("a question that is not accepted", () => {
  test.each([
    ["nothing", {}],
    ["no text", { query: 7 }],
    ["an empty text", { query: "" }],
    ["blanks alone", { query: " \n\t\u3000" }],
    ["a text that is too long", { query: "x".repeat(8_193) }],
    ["half a character", { query: "\ud800" }],
    ["no memory", { query: "x", limit: 0 }],
    ["too many memories", { query: "x", limit: 101 }],
    ["part of a memory", { query: "x", limit: 1.5 }],
    ["a number as text", { query: "x", limit: "5" }],
    ["less than no hop", { query: "x", expand_hops: -1 }],
    ["too many hops", { query: "x", expand_hops: 4 }],
    ["an importance that none has", { query: "x", importance_min: 1.01 }],
    ["no importance", { query: "x", importance_min: -0.01 }],
    ["a type that none has", { query: "x", memory_type: "Fact!" }],
    ["a time without an offset", { query: "x", as_of: "2024-01-01T00:00:00" }],
    ["no time", { query: "x", known_at: "yesterday" }],
    ["an unknown mode", { query: "x", mode: "slow" }],
    ["too many realms", { query: "x", realms: Array.from({ length: 101 }, (_, i) => `r${i}`) }],
    ["too many tags", { query: "x", tags: Array.from({ length: 51 }, (_, i) => `t${i}`) }],
    ["no list", { query: "x", realms: "default" }],
    ["an unknown field", { query: "x", top_k: 5 }],
    ["what is no object", ["x"]],
  ])("%s", async (_, body) => {
    const answer = await ann.ask("POST", "query", body);
    expect(answer).toMatchObject({ httpStatus: 400, error: { code: "bad_request_body" } });
  });

  test("and one of whom nobody knows", async () => {
    const options = { method: "POST", body: '{"query":"x"}', headers: { "Content-Type": "application/json" } };
    expect((await fetch(`${services.url}/v1/agent/memory/query`, options)).status).toBe(401);
  });
});

describe("a server that starts again", () => {
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
  });

  /** Two years old. */
  const aged = (id: string, memory_type: string) => {
    const then = new Date(Date.now() - 2 * 365 * 86_400_000).toISOString();
    return { id, content: `about ${id}`, memory_type, origin_updated_at: then, valid_from: then };
  };

  test("builds its indexes at once, and rates as it is told", async () => {
    const { home, remove } = await temporaryHome();
    closers.push(remove);
    const start = async (env: Record<string, string>) => {
      const running = await startServices({ ENGINE_HOME: home, ENGINE_ROLES: "query", ...env });
      closers.push(() => running.stop());
      return { running, memory: Remembering.open(running.url) };
    };
    const ageOf = async (memory: Remembering, id: string) => (await memory.recall(id)).memories[0]?.score_parts["age"];
    const idsOf = async (memory: Remembering, query: string) =>
      (await memory.recall(query)).memories.map(({ id }) => id);

    const first = await start({});
    const nodes = ["ship", "quay", "town"].map((id) => ({ id, content: `about the ${id}` }));
    const edges = [
      { src: "ship", dst: "quay" },
      { src: "quay", dst: "town" },
    ];
    await first.memory.save([...nodes, aged("decided", "decision"), aged("preferred", "preference")], edges);
    // Age has taken most of its fifth, whatever the type.
    expect(await ageOf(first.memory, "decided")).toBeCloseTo(0.81, 2);
    expect(await ageOf(first.memory, "preferred")).toBeCloseTo(0.81, 2);
    expect(await idsOf(first.memory, "ship")).toEqual(["ship", "quay"]);
    await first.running.stop();

    const { memory } = await start({ ENGINE_MEMORY_PPR: "1", ENGINE_MEMORY_CLASS_DECAY: "true" });
    const index = async () => (await memory.done("GET", "overview"))["index"];
    await expect.poll(index).toEqual({ state: "ready", commits: 1, size_bytes: expect.any(Number) });
    expect(await ageOf(memory, "decided")).toBeCloseTo(0.4, 2);
    expect(await ageOf(memory, "preferred")).toBeCloseTo(0.7, 2);
    // A walk does not end after one hop.
    expect(await idsOf(memory, "ship")).toEqual(["ship", "quay", "town"]);
  });
});
