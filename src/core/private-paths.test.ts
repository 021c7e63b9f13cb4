import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { keepPathsPrivate, namesPrivatePath } from "./private-paths.ts";

afterEach(() => keepPathsPrivate([]));

describe("a text names a private place", () => {
  test.each([
    "/srv/engine",
    "cannot open /srv/engine/data/a.tlm",
    'IO Error: Cannot open file "/srv/engine/tmp/query-1/child-2/x": No such file',
    "see file:///srv/engine/catalog.db",
    "/srv/engine.",
    "path=/srv/engine/x",
    "/data",
    "/data/x.parquet",
    "ENOENT: no such file or directory, open '/etc/anything'",
    "it failed: EACCES: permission denied, mkdir '/proc/x'",
    "ENOTEMPTY: directory not empty, rename '/a' -> '/b'",
    "query processes do not start: spawn /bin/sh ENOENT",
  ])("%j", (text) => {
    keepPathsPrivate(["/srv/engine", "/data"]);
    expect(namesPrivatePath(text)).toBe(true);
    keepPathsPrivate([]);
    expect(namesPrivatePath(text)).toBe(false);
  });

  test.each([
    "there is no route /v1/data",
    "there is no table /etc/passwd",
    "/srv/engines/x",
    "/srv/other",
    "/database",
    "s3://bucket/data/x",
    "the file /workspace/data was not found",
    "a/srv/engine",
    "no such file or directory",
  ])("and does not: %j", (text) => {
    keepPathsPrivate(["/srv/engine", "/data", "/"]);
    expect(namesPrivatePath(text)).toBe(false);
  });

  test("by every name that the place has, there or not", () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "private-")));
    mkdirSync(join(folder, "real"));
    symlinkSync(join(folder, "real"), join(folder, "link"));
    keepPathsPrivate([join(folder, "link", "home")]);
    for (const name of ["link", "real"]) expect(namesPrivatePath(`in ${join(folder, name, "home", "x")}`)).toBe(true);
    rmSync(folder, { recursive: true });
  });
});
