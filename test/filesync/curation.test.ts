import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runChild, runHere } from "../../src/cli/cli.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { passResult } from "../../src/knowledge/filesync/file-sync.ts";
import { startScriptedProvider } from "../../src/knowledge/agent/engines/scripted-provider.test-kit.ts";
import { ProviderServer } from "../../src/knowledge/memory/embed/provider-server.test-kit.ts";
import { setEngine } from "../agent/agent.test-kit.ts";
import { startEngine } from "../support/engine.ts";
import { memoryAt, type MemoryTask } from "./memory.test-kit.ts";

/** What `engine sync` tells of memories that are stale, or say the same, and what it does about them. */
const PROJECT = "-work-web";
const REALM = `project:${PROJECT}`;
const DAY_MS = 86_400_000;

let root = "";
let folder = "";
const closers: (() => Promise<unknown>)[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "engine-curation-"));
  folder = join(root, "agent", "projects", PROJECT, "memory");
  mkdirSync(folder, { recursive: true });
});
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  rmSync(root, { recursive: true });
});

const env = (more: Record<string, string> = {}) => ({
  ENGINE_HOME: join(root, "home"),
  ENGINE_CA_HOME: join(root, "agent"),
  ENGINE_CA_QUIET_WINDOW: "0",
  ...more,
});

type Told = { done: string[]; stale: string[]; duplicates: string[] };

function toldIn(stdout: string): Told {
  const [project] = passResult.parse(JSON.parse(stdout)).projects;
  if (project === undefined || project.error !== undefined) throw new Error(`no project, or ${project?.error}`);
  const { done, review } = project;
  expect([review.stale_count, review.duplicate_count]).toEqual([review.stale.length, review.duplicates.length]);
  return {
    done: done.map(({ file, action }) => `${file} ${action}`).toSorted(),
    stale: review.stale.map(({ name }) => name),
    duplicates: review.duplicates
      .map(({ name, is, of, cosine }) => `${name} ${is} ${of.name} ${cosine ?? "-"}`)
      .toSorted(),
  };
}

async function sync(more: Record<string, string> = {}): Promise<Told> {
  const { code, stdout, stderr } = await runHere(["sync", "--json"], { env: env(more) });
  expect([code, stderr]).toEqual([0, ""]);
  return toldIn(stdout);
}

const withMemory = <T>(task: MemoryTask<T>): Promise<T> => memoryAt(join(root, "home"), task);
const ago = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString();

/** A memory as it comes from another machine, which was said so many days ago. */
const said = (id: string, content: string, days: number, more: Record<string, unknown> = {}) => ({
  id,
  name: id,
  content,
  realm: REALM,
  created_at: ago(days),
  origin_updated_at: ago(days),
  ...more,
});
const importAll = (...nodes: object[]) =>
  withMemory((memory, scope) => memory.import(scope, { memory_nodes: nodes, memory_edges: [] }));

async function edges(): Promise<string[]> {
  return await withMemory(async (memory, scope) => {
    const { versions } = await memory.changes(scope, { realm: REALM });
    return versions.flatMap((one) => {
      if (one.kind !== "edge" || one.erased || one.record.invalidatedAtUs !== undefined) return [];
      return [`${one.record.src} ${one.record.rel} ${one.record.dst}`];
    });
  });
}

/** The contents of the memories that hold. */
async function contents(): Promise<string[]> {
  return await withMemory(async (memory, scope) => {
    const { versions } = await memory.changes(scope, { realm: REALM });
    const holding = versions.flatMap((one) =>
      one.kind === "node" && !one.erased && one.record.invalidatedAtUs === undefined ? [one.record.content] : [],
    );
    return holding.toSorted();
  });
}

const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
const index = () => readFileSync(join(folder, "MEMORY.md"), "utf8");
const names = () => readdirSync(folder).toSorted();

describe("stale memories", () => {
  test("are told of, leave our part of the index and get no file, until somebody changes them", async () => {
    write("port.md", "On port 8443");
    write("MEMORY.md", "# Mine\n\n- [tea](tea.md)\n");
    await importAll(
      said("old", "Releases are signed", 100, { importance: 0.9 }),
      said("new", "Tea at four", 80, { importance: 0.9 }),
    );
    const first = await sync();
    expect(first).toMatchObject({ stale: ["old"], duplicates: [] });
    expect(first.done).toEqual(["MEMORY.md written", "new.md promoted", "port.md saved"]);
    expect(await sync({ ENGINE_CA_STALE_DAYS: "100" })).toMatchObject({ stale: ["old"], done: [] });
    expect(await sync({ ENGINE_CA_STALE_DAYS: "101" })).toMatchObject({
      stale: [],
      done: ["MEMORY.md written", "old.md promoted"],
    });
    // Its file stays, and so does what it says; its line in our part of the index does not.
    expect(await sync()).toMatchObject({ stale: ["old"], done: ["MEMORY.md written"] });
    expect([names(), index()]).toEqual([
      ["MEMORY.md", "new.md", "old.md", "port.md"],
      expect.not.stringContaining("old.md"),
    ]);
    expect(await contents()).toEqual(["On port 8443", "Releases are signed", "Tea at four"]);
    expect(await sync()).toMatchObject({ stale: ["old"], done: [] });
    write("old.md", readFileSync(join(folder, "old.md"), "utf8").replace("signed", "signed by two"));
    expect(await sync()).toMatchObject({ stale: [], done: ["MEMORY.md written", "old.md saved"] });
    expect(index()).toContain("(old.md)");
  });

  test("are not those whose file somebody has touched", async () => {
    write("port.md", "On port 8443");
    const { id: _id, ...port } = said("port", "On port 8443", 200, { memory_type: "fact", topic_key: "file:port.md" });
    await importAll(port, said("other", "Another one", 200));
    expect(await sync()).toMatchObject({ stale: ["other"], done: [] });
    const past = new Date(Date.now() - 100 * DAY_MS);
    utimesSync(join(folder, "port.md"), past, past);
    expect(await sync()).toMatchObject({ stale: ["other", "port"], done: [] });
    utimesSync(join(folder, "port.md"), new Date(), new Date());
    expect(await sync()).toMatchObject({ stale: ["other"], done: [] });
  });

  test("are printed for people, with their age", async () => {
    await importAll(said("old", "Releases are signed", 100));
    const { stdout } = await runHere(["sync"], { env: env() });
    expect(stdout).toBe(`${PROJECT}  stale: "old" (old) has not been changed since ${ago(100).slice(0, 10)}\n`);
  });
});

describe("duplicates without a model", () => {
  test("with the same text are linked, and one of them gets a file, as important as the most important", async () => {
    await importAll(
      said("first", "The gateway listens\non 8443", 9, { importance: 0.3 }),
      said("second", "the gateway  listens on 8443", 5, { importance: 0.9 }),
      said("third", "The gateway listens on 8444", 5, { importance: 0.2 }),
    );
    expect(await sync()).toEqual({
      done: ["MEMORY.md written", "first.md promoted"],
      stale: [],
      duplicates: ["second linked first -"],
    });
    expect(await edges()).toEqual(["second duplicate_of first"]);
    expect(await contents()).toHaveLength(3);
    expect(await sync()).toMatchObject({ done: [], duplicates: ["second linked first -"] });
  });

  test("of files: both files stay, and the index that we keep has one line", async () => {
    write("MEMORY.md", "# Mine\n");
    write("a.md", "One");
    await sync();
    write("b.md", "one");
    expect(await sync()).toMatchObject({ duplicates: ["b linked a -"] });
    expect([names(), index()]).toEqual([["MEMORY.md", "a.md", "b.md"], expect.not.stringContaining("b.md")]);
    // The edge ends when one of them says something else.
    write("b.md", "Two");
    expect(await sync()).toMatchObject({ done: ["MEMORY.md written", "b.md saved"], duplicates: [] });
    expect([await edges(), index()]).toEqual([[], expect.stringContaining("(b.md)")]);
  });

  test("are none where somebody has ended the edge", async () => {
    await importAll(said("first", "The same", 9), said("second", "The same", 5, { memory_type: "decision" }));
    expect(await sync()).toMatchObject({ duplicates: ["second linked first -"] });
    await withMemory(async (memory, scope) => {
      const { versions } = await memory.changes(scope, { realm: REALM });
      const edge = versions.find(({ kind }) => kind === "edge");
      await memory.invalidate(scope, { kind: "edge", id: String(edge?.record.id) });
    });
    expect(await sync()).toMatchObject({ duplicates: [] });
    rmSync(join(root, "home", "filesync"), { recursive: true });
    expect(await sync()).toMatchObject({ duplicates: [] });
    expect(await edges()).toEqual([]);
  });
});

test("duplicates with a model: above the band they are linked, within it reported, and numbers tell facts apart", async () => {
  const provider = await ProviderServer.start();
  closers.push(() => provider.stop());
  const angles: Record<string, number> = { base: 0, close: 10, likely: 20, far: 60, 8443: 0, 8444: 0 };
  provider.vectorOf = (text) => {
    const [, angle = 90] = Object.entries(angles).find(([word]) => text.includes(word)) ?? [];
    const port = text.includes("port") ? 1 : 0;
    return [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180), port * 5];
  };
  const embed = { ENGINE_EMBED_PROVIDER: "openai-compat", ENGINE_EMBED_BASE_URL: provider.url };
  await importAll(
    said("base", "The base of it", 9),
    said("close", "The close one", 8),
    said("likely", "The likely one", 7),
    said("far", "The far one", 6),
    said("port", "The port is 8443", 5),
    said("other-port", "The port is 8444", 4),
  );
  // Without vectors yet, nothing but texts is compared.
  expect(await sync(embed)).toMatchObject({ duplicates: [] });
  const engine = await startEngine({ home: join(root, "home"), env: { ...env(), ...embed } });
  closers.push(() => engine.stop());
  const synced = async (more: Record<string, string> = {}): Promise<Told> => {
    const { stdout } = await runChild(["sync", "--json"], { env: { ...env(), ...embed, ...more } });
    return toldIn(stdout);
  };
  const found = ["close linked base 0.9848", "likely possible base 0.9397", "other-port possible port 1"];
  await eventually(async () => (await synced()).duplicates.length === found.length);
  expect(await synced()).toEqual({ done: [], stale: [], duplicates: found });
  expect(await synced({ ENGINE_CA_DUP_COSINE: "0.95-0.99" })).toMatchObject({
    duplicates: ["close possible base 0.9848", "likely possible close 0.9848", "other-port possible port 1"],
  });
  const all = await synced({ ENGINE_CA_DUP_COSINE: "0.4-0.93" });
  expect(all.duplicates).toContain("likely linked base 0.9397");
  // What was found by vectors is kept while there are none, for as long as nobody says something else.
  const off = await runChild(["sync", "--json"], { env: env({ ENGINE_CA_DUP_COSINE: "0.4-0.93" }) });
  expect(toldIn(off.stdout).duplicates).toEqual(["close linked base -", "likely linked base -"]);
});

test("duplicates that the engine of the agent judges are linked, or not told of any more", async () => {
  const [provider, model] = [await ProviderServer.start(), await startScriptedProvider()];
  closers.push(
    () => provider.stop(),
    () => model.close(),
  );
  provider.vectorOf = (text) => {
    const angle = ((text.includes("two") ? 20 : 0) * Math.PI) / 180;
    return [Math.cos(angle), Math.sin(angle), text.includes("port") ? 5 : 0];
  };
  model.play(({ body }) => {
    const messages = (body?.["messages"] ?? []) as { content: string }[];
    const lines = [...(messages.at(-1)?.content ?? "").matchAll(/^pair (\S+): (.*)$/gm)].map(([, pair, texts = ""]) => {
      return JSON.stringify({ pair, verdict: texts.includes("port") ? "different" : "same" });
    });
    return { text: [lines.join("\n")] };
  });
  await importAll(
    said("one", "One way of it", 9),
    said("two", "It, the two-sided way", 8),
    said("port", "The port is 8443", 5),
    said("other-port", "The port is 8444", 4),
  );
  const all = {
    ENGINE_EMBED_PROVIDER: "openai-compat",
    ENGINE_EMBED_BASE_URL: provider.url,
    ENGINE_LOCALMODEL_HOST: model.url,
    ENGINE_MEMORY_CONSOLIDATION_POLL_SECS: "1",
  };
  const engine = await startEngine({ home: join(root, "home"), env: { ...env(), ...all } });
  closers.push(() => engine.stop());
  const synced = async (): Promise<Told> =>
    toldIn((await runChild(["sync", "--json"], { env: { ...env(), ...all } })).stdout);
  await eventually(async () => (await synced()).duplicates.length === 2);
  expect(await synced()).toMatchObject({
    duplicates: ["other-port possible port 1", "two possible one 0.9397"],
  });
  expect(model.requests).toEqual([]);
  await setEngine(engine.url, "localmodel");
  await eventually(async () => (await synced()).duplicates.length === 1);
  expect(await synced()).toMatchObject({ duplicates: ["two linked one 0.9397"] });
  expect(model.requests).toHaveLength(1);
});

test("ENGINE_CA_CURATE=0 reviews, links and promotes nothing", async () => {
  await importAll(said("first", "The same", 200, { importance: 1 }), said("second", "the same", 5, { importance: 1 }));
  expect(await sync({ ENGINE_CA_CURATE: "0" })).toEqual({ done: [], stale: [], duplicates: [] });
  expect([await edges(), names()]).toEqual([[], []]);
  expect(await sync()).toMatchObject({ stale: ["first"], duplicates: ["second linked first -"] });
  expect(await sync({ ENGINE_CA_CURATE: "0" })).toEqual({ done: [], stale: [], duplicates: [] });
});

test.each(["0.9", "0.97-0.90", "0.9-1.1", "0.9-0.95-0.97", "a-b"])(
  "ENGINE_CA_DUP_COSINE=%s is refused",
  async (band) => {
    const { code, stderr } = await runHere(["sync"], { env: env({ ENGINE_CA_DUP_COSINE: band }) });
    expect([code, stderr]).toEqual([2, expect.stringContaining("0.90-0.97")]);
  },
);
