import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { entriesIn, writeTar } from "../../scripts/release/tar.ts";

const scratch = mkdtempSync(join(tmpdir(), "engine-tar-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const LONG = `${"d".repeat(90)}/${"f".repeat(90)}`;

/** The same files, written in another order, with other times and another umask. */
function filesIn(name: string, { mask, isReversed }: { mask: number; isReversed: boolean }): string {
  const folder = join(scratch, name);
  const files = [
    ["b/run", 0o755],
    ["a", 0o644],
    [LONG, 0o644],
    ["b.txt", 0o644],
  ] as const;
  for (const [path, mode] of isReversed ? files.toReversed() : files) {
    const file = join(folder, path);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, `text of ${path}`);
    chmodSync(file, mode & ~mask);
    utimesSync(file, mask, mask);
  }
  return folder;
}

test("the same files make the same bytes, and tar reads them", async () => {
  const made = [];
  for (const [name, options] of [
    ["one", { mask: 0o022, isReversed: false }],
    ["another-folder", { mask: 0o077, isReversed: true }],
  ] as const) {
    const file = join(scratch, `${name}.tgz`);
    await writeTar(file, "top", await entriesIn(filesIn(name, options)), 1_700_000_000);
    made.push(readFileSync(file));
  }
  expect(made[0]?.equals(made[1] ?? Buffer.alloc(0))).toBe(true);
  const list = execFileSync("tar", ["-tvzf", join(scratch, "one.tgz"), "--numeric-owner", "--utc"], {
    encoding: "utf8",
  });
  expect(list).toMatch(/^-rwxr-xr-x 0\/0 +13 2023-11-14 22:13 top\/b\/run$/m);
  expect(list).toContain(`top/${LONG}\n`);
});

test("links are refused, and so is a path that comes twice", async () => {
  const folder = join(scratch, "links");
  mkdirSync(folder);
  symlinkSync("/etc/passwd", join(folder, "link"));
  await expect(entriesIn(folder)).rejects.toThrow("is neither a file nor a folder");
  const entry = { path: "a", source: Buffer.from("x"), isExecutable: false };
  await expect(writeTar(join(scratch, "x.tgz"), "top", [entry, entry], 0)).rejects.toThrow("a comes twice");
});
