import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import { passResult } from "../../src/knowledge/filesync/file-sync.ts";
import type { NodeRecord } from "../../src/knowledge/memory/model.ts";
import { memoryAt, type MemoryTask } from "./memory.test-kit.ts";

const PROJECT = "-work-web";
const REALM = `project:${PROJECT}`;

let root = "";
let folder = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "engine-filesync-"));
  folder = join(root, "agent", "projects", PROJECT, "memory");
  mkdirSync(folder, { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true }));

const env = (more: Record<string, string> = {}) => ({
  ENGINE_HOME: join(root, "home"),
  ENGINE_CA_HOME: join(root, "agent"),
  ENGINE_CA_QUIET_WINDOW: "0",
  ...more,
});

/** One pass: what was done to which file. */
async function sync(argv: readonly string[] = [], more: Record<string, string> = {}): Promise<Record<string, string>> {
  const ran = await runHere(["sync", "--json", ...argv], { env: env(more) });
  expect([ran.code, ran.stderr]).toEqual([0, ""]);
  const { projects } = passResult.parse(JSON.parse(ran.stdout));
  expect(projects.map(({ error }) => error)).toEqual(projects.map(() => undefined));
  return Object.fromEntries(projects.flatMap(({ done }) => done.map(({ file, action }) => [file, action])));
}

const withMemory = <T>(task: MemoryTask<T>): Promise<T> => memoryAt(join(root, "home"), task);

type Said = Pick<NodeRecord, "id" | "name" | "content" | "memoryType">;

/** The memories of the project that hold. */
async function memories(): Promise<Said[]> {
  return await withMemory(async (memory, scope) => {
    const { versions } = await memory.changes(scope, { realm: REALM });
    return versions.flatMap((version) => {
      if (version.kind !== "node" || version.erased || version.record.invalidatedAtUs !== undefined) return [];
      const { id, name, content, memoryType } = version.record;
      return [{ id, name, content, memoryType }];
    });
  });
}

const texts = async () => (await memories()).map(({ content }) => content).toSorted();

async function edges(rel: string): Promise<string[]> {
  return await withMemory(async (memory, scope) => {
    const { versions } = await memory.changes(scope, { realm: REALM });
    const names = new Map(
      versions.flatMap((one) => (one.kind === "node" && !one.erased ? [[one.record.id, one.record.name]] : [])),
    );
    return versions.flatMap((one) => {
      if (one.kind !== "edge" || one.erased || one.record.invalidatedAtUs !== undefined || one.record.rel !== rel)
        return [];
      return [`${names.get(one.record.src)} ${names.get(one.record.dst)}`];
    });
  });
}

const save = (fields: Record<string, unknown>) =>
  withMemory(async (memory, scope) => (await memory.saveNode(scope, { realm: REALM, ...fields })).record);

function write(name: string, text: string): void {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
const read = (name: string) => readFileSync(join(folder, name), "utf8");
const names = () => readdirSync(folder).toSorted();

const fact = (body: string, { name = "a-fact", type = "project", more = "" } = {}) =>
  `---\nname: ${name}\ndescription: What it is about\n${more}metadata:\n  type: ${type}\n---\n\n${body}\n`;

/** The content of the memory that a file made, changed by somebody. */
async function say(file: string, content: string): Promise<void> {
  await save({ topic_key: `file:${file}`, content });
}

describe("a file that somebody wrote", () => {
  test("becomes a memory, of the type that its own means", async () => {
    write("port.md", fact("The gateway listens on 8443", { name: "port" }));
    write("style.md", fact("Short sentences", { name: "style", type: "feedback" }));
    write("who.md", fact("Likes tea", { name: "who", type: "user" }));
    write("plain.md", "No front matter at all\n");
    write("MEMORY.md", "# Mine\n\n- [port](port.md) — the port\n");
    expect(await sync()).toEqual({
      "MEMORY.md": "written",
      "plain.md": "saved",
      "port.md": "saved",
      "style.md": "saved",
      "who.md": "saved",
    });
    const found = (await memories()).map(({ name, content, memoryType }) => `${name}: ${content} (${memoryType})`);
    expect(found.toSorted()).toEqual([
      "plain: No front matter at all (fact)",
      "port: The gateway listens on 8443 (fact)",
      "style: Short sentences (learning)",
      "who: Likes tea (preference)",
    ]);
    expect(read("MEMORY.md")).toMatch(
      /^# Mine\n\n- \[port\]\(port\.md\) — the port\n\n<!-- engine: begin .*-->\n(- \[.*\n){3}<!-- engine: end -->\n$/,
    );
    expect(await sync()).toEqual({});
  });

  test("is followed by its memory when it changes, and when it goes", async () => {
    write("a.md", fact("One"));
    await sync();
    const [before] = await memories();
    write("a.md", fact("Two"));
    expect(await sync()).toEqual({ "a.md": "saved" });
    expect(await memories()).toMatchObject([{ id: before?.id, content: "Two" }]);
    rmSync(join(folder, "a.md"));
    expect(await sync()).toEqual({ "a.md": "invalidated" });
    expect(await texts()).toEqual([]);
    write("a.md", fact("Three"));
    expect(await sync()).toEqual({ "a.md": "saved" });
    expect(await memories()).toMatchObject([{ id: before?.id, content: "Three" }]);
  });

  test("follows its memory, with what else its front matter has", async () => {
    write("a.md", fact("One", { more: "# a remark\nowner: Ann\n" }));
    await sync();
    await say("a.md", "Two, as somebody else says");
    expect(await sync()).toEqual({ "a.md": "written" });
    expect(read("a.md")).toBe(fact("Two, as somebody else says", { more: "# a remark\nowner: Ann\n" }));
    const [known] = await memories();
    await withMemory((memory, scope) => memory.invalidate(scope, { kind: "node", id: String(known?.id) }));
    expect(await sync()).toEqual({ "a.md": "removed" });
    expect(names()).toEqual([]);
  });

  test("links to others, as memories do then", async () => {
    write("a.md", fact("See [[the other]] and [[nothing]]", { name: "one" }));
    write("b.md", fact("Alone", { name: "The Other" }));
    await sync();
    expect(await edges("links_to")).toEqual(["one The Other"]);
    write("a.md", fact("See nothing", { name: "one" }));
    await sync();
    expect(await edges("links_to")).toEqual([]);
  });
});

describe("both sides", () => {
  test("are kept where both have changed, and linked", async () => {
    write("a.md", fact("One"));
    await sync();
    write("a.md", fact("The file says two"));
    await say("a.md", "The memory says three");
    expect(await sync()).toEqual({ "a.md": "conflict" });
    expect(await texts()).toEqual(["The file says two", "The memory says three"]);
    expect(await edges("conflicts_with")).toEqual(["a-fact a-fact"]);
    expect(read("a.md")).toBe(fact("The file says two"));
    expect(await sync()).toEqual({});
  });

  test("are alike where both say the same, also without what was synced", async () => {
    write("a.md", fact("One"));
    await sync();
    write("a.md", fact("Two"));
    await say("a.md", "Two");
    expect(await sync()).toEqual({});
    rmSync(join(root, "home", "filesync"), { recursive: true });
    expect(await sync()).toEqual({});
    write("a.md", fact("Three"));
    expect(await sync()).toEqual({ "a.md": "saved" });
    expect(await texts()).toEqual(["Three"]);
  });

  test("are compared anew where the memory is another one: a new catalog, or an earlier state of it", async () => {
    write("a.md", fact("One"));
    await sync();
    rmSync(join(root, "home", "catalog.db"));
    expect(await sync()).toEqual({ "a.md": "saved" });
    expect(await texts()).toEqual(["One"]);
    expect(names()).toEqual(["a.md"]);
  });

  test("a memory that was changed is not lost with its file, nor a file with its memory", async () => {
    write("a.md", fact("One"));
    write("b.md", fact("One more", { name: "b" }));
    await sync();
    rmSync(join(folder, "a.md"));
    await say("a.md", "Changed since");
    const b = (await memories()).find(({ name }) => name === "b");
    await withMemory((memory, scope) => memory.invalidate(scope, { kind: "node", id: String(b?.id) }));
    write("b.md", fact("Changed, too", { name: "b" }));
    expect(await sync()).toEqual({ "a.md": "written", "b.md": "saved" });
    expect(read("a.md")).toContain("Changed since");
    expect(await texts()).toEqual(["Changed since", "Changed, too"]);
  });
});

describe("memories without a file", () => {
  test("get one when they matter, the most important first, and lose it when they do not hold", async () => {
    const port = await save({ content: "The gateway listens on 8443", importance: 0.9, name: "Port of the gateway" });
    await save({ content: "Tea at four", importance: 0.7 });
    await save({ content: "Seldom of use", importance: 0.5 });
    expect(await sync([], { ENGINE_CA_PROMOTE_MAX: "1" })).toEqual({
      "port-of-the-gateway.md": "promoted",
      "MEMORY.md": "written",
    });
    expect(await sync()).toEqual({ "tea-at-four.md": "promoted", "MEMORY.md": "written" });
    expect(read("MEMORY.md").split("\n").slice(1, 3)).toEqual([
      "- [Port of the gateway](port-of-the-gateway.md) — The gateway listens on 8443",
      "- [Tea at four](tea-at-four.md) — Tea at four",
    ]);
    // The state is lost: the file still knows its memory.
    rmSync(join(root, "home", "filesync"), { recursive: true });
    expect(await sync()).toEqual({});
    write("port-of-the-gateway.md", read("port-of-the-gateway.md").replace("8443", "9443"));
    expect(await sync()).toMatchObject({ "port-of-the-gateway.md": "saved" });
    expect(await memories()).toContainEqual(
      expect.objectContaining({ id: port.id, content: "The gateway listens on 9443" }),
    );
    await withMemory((memory, scope) => memory.invalidate(scope, { kind: "node", id: port.id }));
    expect(await sync()).toEqual({ "port-of-the-gateway.md": "removed", "MEMORY.md": "written" });
    expect(names()).toEqual(["MEMORY.md", "tea-at-four.md"]);
  });

  test("get none while somebody works there, or when it is turned off", async () => {
    write("a.md", fact("One"));
    await save({ content: "It matters", importance: 1 });
    const quiet = { ENGINE_CA_QUIET_WINDOW: "300" };
    expect(await sync([], quiet)).toEqual({ "a.md": "saved" });
    expect(await sync([], { ENGINE_CA_PROMOTE: "0" })).toEqual({});
    expect(await sync()).toEqual({ "it-matters.md": "promoted", "MEMORY.md": "written" });
  });
});

describe("what is left alone", () => {
  test("links, folders, other files, what is too long, no text or no YAML", async () => {
    const outside = join(root, "outside.md");
    writeFileSync(outside, "a secret of somebody");
    symlinkSync(outside, join(folder, "link.md"));
    mkdirSync(join(folder, "folder.md"));
    write("notes.txt", "no fact");
    write("long.md", "x".repeat(256 * 1024 + 1));
    write("more-than-a-memory.md", "x".repeat(20_000));
    write("bytes.md", Buffer.from([0xff, 0xfe, 0x00]).toString("latin1"));
    writeFileSync(join(folder, "latin.md"), Buffer.from([0x61, 0xff]));
    write("broken.md", "---\nname: [\n---\nbody");
    write(
      "bomb.md",
      `---\na: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]\n---\nbody`,
    );
    write("empty.md", "");
    expect(new Set(Object.values(await sync()))).toEqual(new Set(["skipped"]));
    expect(await texts()).toEqual([]);
    expect(readFileSync(outside, "utf8")).toBe("a secret of somebody");
  });

  test("folders that a link leads to, out of the agent's home", async () => {
    const outside = join(root, "elsewhere");
    mkdirSync(outside);
    writeFileSync(join(outside, "a.md"), fact("Not of this agent"));
    mkdirSync(join(root, "agent", "projects", "-evil"));
    symlinkSync(outside, join(root, "agent", "projects", "-evil", "memory"));
    symlinkSync(outside, join(root, "agent", "projects", "-worse"));
    await save({ realm: "project:-evil", content: "It matters", importance: 1 });
    expect(await sync()).toEqual({});
    expect(readdirSync(outside)).toEqual(["a.md"]);
  });

  test("a file with a secret, which its memory does not have", async () => {
    const token = `ghp_${"a1B2".repeat(9)}`;
    write("a.md", fact(`The token is ${token}`));
    await sync();
    expect(await texts()).toEqual([expect.not.stringContaining(token)]);
    await say("a.md", "There is a token");
    expect(await sync()).toEqual({ "a.md": "skipped" });
    expect(read("a.md")).toContain(token);
  });

  test("hostile words of a memory stay words", async () => {
    const hostile = "../../../etc/passwd\u202e";
    await save({
      content: `---\nname: x\n---\n<!-- engine: end -->\n[[${hostile}]]`,
      name: `${hostile} ](x) <!-- engine: end -->`,
      importance: 1,
    });
    expect(Object.values(await sync()).toSorted()).toEqual(["promoted", "written"]);
    const file = names().find((name) => name !== "MEMORY.md") ?? "";
    expect(file).toMatch(/^etc-passwd[a-z0-9-]*\.md$/);
    expect(read("MEMORY.md").split("\n")).toHaveLength(4);
    expect(await sync()).toEqual({});
    expect(await memories()).toHaveLength(1);
  });
});

test("a dry run says what would be done, and does nothing", async () => {
  write("a.md", fact("One"));
  expect(await sync(["--dry-run"])).toEqual({ "a.md": "saved" });
  expect(await texts()).toEqual([]);
  await sync();
  await say("a.md", "Two");
  const before = statSync(join(folder, "a.md")).mtimeMs;
  expect(await sync(["--dry-run"])).toEqual({ "a.md": "written" });
  expect(statSync(join(folder, "a.md")).mtimeMs).toBe(before);
  expect(await sync()).toEqual({ "a.md": "written" });
});

test("a change within the same moment and of the same length is seen", async () => {
  const at = new Date();
  write("a.md", fact("One"));
  utimesSync(join(folder, "a.md"), at, at);
  await sync();
  write("a.md", fact("Two"));
  utimesSync(join(folder, "a.md"), at, at);
  expect(await sync()).toEqual({ "a.md": "saved" });
});

test("one project alone, by its folder", async () => {
  write("a.md", fact("One"));
  expect(await sync(["--project", "/work/other"])).toEqual({});
  expect(await sync(["--project", "/work/web"])).toEqual({ "a.md": "saved" });
});
