import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ADMIN, by, openAccess, type Access } from "../../auth/access.test-kit.ts";
import { SKILL_LIMITS } from "./limits.ts";
import { SHIPPED_SKILLS } from "./shipped/all.ts";
import { skillText } from "./shipped/skill.ts";
import { parseSkill } from "./skill-file.ts";
import { Skills, type SkillItem } from "./skills.ts";

const SHIPPED = SHIPPED_SKILLS.map(({ name }) => name);

let root: string;
let home: string;
let directory: string;
let access: Access;
let skills: Skills;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "skills-"));
  [home, directory] = [join(root, "home"), join(root, "dir")];
  for (const path of [home, join(home, "skills"), directory]) mkdirSync(path);
  access = await openAccess();
  skills = new Skills({ records: access.records, audit: access.audit, home, directory });
});
afterEach(async () => {
  await access.close();
  rmSync(root, { recursive: true, force: true });
});

function add(folder: string, name: string, text: string | Buffer): string {
  mkdirSync(join(folder, name));
  writeFileSync(join(folder, name, "SKILL.md"), text);
  return join(folder, name);
}
const text = (name: string, description = "What it is for.", body = "Do it so.") =>
  skillText({ name, description, body });
const found = async (name: string): Promise<SkillItem[]> =>
  (await skills.list()).skills.filter((skill) => skill.name === name);
const problemOf = async (name: string): Promise<string> => {
  const [item, ...others] = await found(name);
  expect([item?.enabled, others]).toEqual([false, []]);
  return item?.problems.join("; ") ?? "";
};
const enabled = async () => (await skills.enabled()).map(({ name }) => name);

describe("what is found", () => {
  test("shipped skills are enabled until somebody chooses, others are not", async () => {
    add(join(home, "skills"), "own", text("own"));
    add(directory, "house", text("house", "Of the\n house."));
    expect(await enabled()).toEqual(SHIPPED);
    expect(await found("own")).toEqual([
      { name: "own", description: "What it is for.", source: "home", enabled: false, problems: [] },
    ]);
    expect(await found("house")).toMatchObject([{ description: "Of the house.", source: "directory" }]);
    expect(await skills.enable(["own", "house", "own", "engine-sql"], by(ADMIN))).toEqual([
      "own",
      "house",
      "engine-sql",
    ]);
    expect(await enabled()).toEqual(["engine-sql", "own", "house"]);
    expect(await skills.read("own")).toBe("Do it so.");
    await expect(skills.read("engine-memory")).rejects.toMatchObject({ code: "not_found" });
    // Neither needs a restart.
    writeFileSync(join(home, "skills", "own", "SKILL.md"), text("own", "x", "Do it otherwise."));
    expect(await skills.read("own")).toBe("Do it otherwise.");
    rmSync(join(directory, "house"), { recursive: true });
    expect(await enabled()).toEqual(["engine-sql", "own"]);
    await skills.enable([], by(ADMIN));
    expect(await enabled()).toEqual([]);
  });

  test("names that cannot be enabled are refused one by one, and nothing is changed", async () => {
    add(directory, "broken", "---\nname: [\n---\n");
    const cases: [string[], RegExp][] = [
      [["engine-sql", "engine-sq"], /no skill "engine-sq"/],
      [["broken"], /"broken" cannot be enabled: the front matter is no YAML/],
      [["../home"], /no skill "..\/home"/],
    ];
    for (const [names, message] of cases) {
      await expect(skills.enable(names, by(ADMIN))).rejects.toMatchObject({ code: "bad_request_body", message });
    }
    await expect(skills.read("engine-sq")).rejects.toMatchObject({ details: { suggestion: "engine-sql" } });
    expect(await enabled()).toEqual(SHIPPED);
    expect(await access.audit.list({ limit: 5 })).toEqual([]);
    await skills.enable(["engine-sql"], by(ADMIN));
    expect(await access.audit.list({ limit: 5 })).toMatchObject([
      { action: "agent.skills", outcome: "ok", details: { skills: ["engine-sql"] } },
    ]);
  });

  test("says what is wrong with a skill", async () => {
    const own = join(home, "skills");
    add(own, "no-matter", "# Only a text");
    add(own, "late", `x\n${text("late")}`);
    add(own, "no-name", "---\ndescription: d\n---\nx");
    add(own, "bad-name", text("Bad Name"));
    add(own, "no-description", "---\nname: no-description\n---\nx");
    add(own, "long", text("long", "x".repeat(SKILL_LIMITS.descriptionChars + 1)));
    add(own, "no-body", text("no-body", "d", "\n"));
    add(own, "large", text("large", "d", "x".repeat(SKILL_LIMITS.bytes)));
    add(own, "binary", Buffer.from([0xff, 0xfe]));
    add(own, "aliases", "---\na: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a]\nc: [*b, *b, *b, *b, *b, *b]\n---\nx");
    add(own, "engine-sql", text("engine-sql"));
    mkdirSync(join(own, "a-folder", "SKILL.md"), { recursive: true });
    mkdirSync(join(own, "a-pipe"));
    execFileSync("mkfifo", [join(own, "a-pipe", "SKILL.md")]);
    expect(await problemOf("no-matter")).toContain("no front matter");
    expect(await problemOf("late")).toContain("no front matter");
    expect(await problemOf("no-name")).toBe("there is no name");
    expect(await problemOf("bad-name")).toContain("lower-case words");
    expect(await problemOf("no-description")).toBe("there is no description");
    expect(await problemOf("long")).toContain("at most 1024");
    expect(await problemOf("no-body")).toContain("no text below");
    expect(await problemOf("large")).toBe("SKILL.md has more than 65536 bytes");
    expect(await problemOf("binary")).toBe("SKILL.md is not UTF-8");
    expect(await problemOf("aliases")).toContain("no YAML");
    expect(await problemOf("a-folder")).toContain("no regular file");
    expect(await problemOf("a-pipe")).toContain("no regular file");
    const [shipped, second] = await found("engine-sql");
    expect(shipped).toMatchObject({ source: "shipped", enabled: true });
    expect(second).toMatchObject({ enabled: false, problems: ["the name is taken by a skill of the source shipped"] });
    // What is no folder, is hidden, or has no such file is nothing of ours.
    writeFileSync(join(own, "README.md"), "");
    mkdirSync(join(own, "notes"));
    add(own, ".hidden", text("hidden"));
    for (const name of ["README.md", "notes", "hidden", ".hidden"]) expect(await found(name)).toEqual([]);
  });

  test("follows no link out of the folder", async () => {
    const outside = add(root, "outside", text("outside"));
    add(directory, "inside", text("inside"));
    symlinkSync(outside, join(directory, "leads-out"));
    mkdirSync(join(directory, "file-out"));
    symlinkSync(join(outside, "SKILL.md"), join(directory, "file-out", "SKILL.md"));
    mkdirSync(join(directory, "circle"));
    symlinkSync("SKILL.md", join(directory, "circle", "SKILL.md"));
    symlinkSync("inside", join(directory, "again"));
    for (const name of ["leads-out", "file-out"]) expect(await problemOf(name)).toContain("leads out of the folder");
    expect(await problemOf("circle")).toBe("SKILL.md cannot be read: ELOOP");
    expect(await found("outside")).toEqual([]);
    expect(await found("inside")).toMatchObject([
      { problems: [] },
      { problems: ["the name is taken by a skill of the source directory"] },
    ]);
    // The folder itself may be a link of the operator.
    symlinkSync(directory, join(root, "link"));
    const linked = new Skills({ ...access, home, directory: join(root, "link") });
    expect((await linked.list()).skills.some(({ name }) => name === "inside")).toBe(true);
  });

  test("says which folder cannot be read, without its path", async () => {
    rmSync(join(home, "skills"), { recursive: true });
    expect((await skills.list()).problems).toEqual([]);
    rmSync(directory, { recursive: true });
    expect((await skills.list()).problems).toEqual(["directory: the folder cannot be read: ENOENT"]);
    writeFileSync(directory, "");
    expect((await skills.list()).problems).toEqual(["directory: the folder cannot be read: ENOTDIR"]);
    expect(await enabled()).toEqual(SHIPPED);
    rmSync(directory);
    mkdirSync(directory);
    for (let n = 0; n <= SKILL_LIMITS.perFolder; n++) mkdirSync(join(directory, `s-${n}`));
    expect((await skills.list()).problems).toEqual([
      "directory: the folder has 201 folders; only the first 200 are looked at",
    ]);
  });
});

test.each(SHIPPED_SKILLS)("the shipped skill $name is one by its own rules", (skill) => {
  expect(parseSkill(skillText(skill))).toEqual({ ok: true, ...skill, body: skill.body.trim() });
});

test("front matter may have Windows' line ends, a mark of order, and members of other programs", () => {
  const parsed = parseSkill(
    "\ufeff---\r\nname: a-1\r\nlicense: MIT\r\ndescription: >\r\n  one\r\n  two\r\n---\r\nBody\r\n",
  );
  expect(parsed).toEqual({ ok: true, name: "a-1", description: "one two", body: "Body" });
});
