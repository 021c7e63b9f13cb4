import { once } from "node:events";
import { lstatSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { replaceModule } from "./replace-module.ts";

let folder = "";
let socket: Server;

/** A package behind a symbolic link, two of whose modules load a third when they are loaded. */
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "engine-modules-")));
  await mkdir(join(folder, "store/part"), { recursive: true });
  await writeFile(join(folder, "store/part/inner.js"), "module.exports = 'its own';");
  for (const name of ["one", "two"]) {
    await writeFile(join(folder, `store/part/${name}.js`), "module.exports = require('./inner');");
  }
  await mkdir(join(folder, "app"));
  await symlink(join(folder, "store"), join(folder, "app/node_modules"));
  socket = createServer().listen(join(folder, "socket"));
  await once(socket, "listening");
});
afterEach(async () => {
  socket.close();
  await rm(folder, { recursive: true });
});

const requireOfApp = () => createRequire(join(folder, "app/main.cjs"));

test("whoever loads the module gets what is put in its place", () => {
  const load = requireOfApp();
  replaceModule(load, "part/inner.js", "ours");
  expect(load("part/one")).toBe("ours");
  expect(() => replaceModule(load, "part/inner.js", "others")).toThrow("was loaded before it could be replaced");
  expect(() => replaceModule(load, "part/none.js", "")).toThrow("part/none.js does not exist, and cannot be replaced");
});

test("also where Node stops at the link because a socket was looked at last", () => {
  const load = requireOfApp();
  replaceModule(load, "part/inner.js", "ours");
  expect(load("part/one")).toBe("ours");
  lstatSync(join(folder, "socket"));
  expect(load("part/two.js")).toBe("ours");
});

test("and where it was so when the module was replaced", () => {
  const load = requireOfApp();
  load.resolve("part/one.js");
  lstatSync(join(folder, "socket"));
  replaceModule(load, "part/inner.js", "ours");
  expect(load("part/one.js")).toBe("ours");
  lstatSync(join(folder, "socket"));
  expect(load("part/two.js")).toBe("ours");
});
