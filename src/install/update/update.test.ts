import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { DatabaseSync } from "../../db/sqlite/driver.ts";
import { APPLICATION_ID } from "../../db/sqlite/migrate.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../../core/clock.ts";
import { ARCHIVE_VERSIONS } from "../../core/distribution.ts";
import { lacks } from "../../core/gates.test-kit.ts";
import { eventually } from "../../core/waiting.test-kit.ts";
import { TAR_END, type TarHeader } from "../../io/tar/tar-format.ts";
import { manifestText } from "../release/manifest.ts";
import { exampleRelease } from "../release/release.test-kit.ts";
import { makeSigningKey } from "../release/signing-key.test-kit.ts";
import type { ServiceManager } from "../service/definition.ts";
import { nudge } from "./nudge.ts";
import { runUpdate } from "./update-command.ts";
import { fakeProgram, tarEntry, tarGz, UpdateWorld } from "./update.test-kit.ts";

let world: UpdateWorld;
beforeEach(() => void (world = new UpdateWorld()));
afterEach(() => world.remove());

function started(program = world.program): string {
  return (JSON.parse(execFileSync(program, ["version", "--json"], { encoding: "utf8" })) as { version: string })
    .version;
}

/** The update was refused for that reason, and nothing has changed. */
function expectRefused(outcome: { code: number; error: string }, reason: string | RegExp, code = 1): void {
  expect(outcome).toMatchObject({ code, error: expect.stringMatching(reason) });
  expect(started()).toBe("0.1.0");
  expect(readdirSync(dirname(world.program))).toEqual(["engine"]);
}

describe("an update", () => {
  test("installs the newest release, keeps the one before, and says so", async () => {
    world.publish("0.2.0");
    expect(await world.update({ check: true })).toMatchObject({
      code: 10,
      out: "0.2.0 is available (this is 0.1.0): engine update\n",
    });
    expect(started()).toBe("0.1.0");
    expect(await world.update()).toMatchObject({ code: 0, out: "updated from 0.1.0 to 0.2.0\n" });
    expect(started()).toBe("0.2.0");
    expect(started(`${world.program}.before`)).toBe("0.1.0");
    expect(readdirSync(dirname(world.program)).toSorted()).toEqual(["engine", "engine.before"]);
    expect(await world.update({ check: true }, "0.2.0")).toMatchObject({
      code: 0,
      out: "0.2.0 is the newest version\n",
    });
    expect((await world.update({ check: true, json: true }, "0.2.0")).out).toContain('"update_available": false');
  });

  test("takes an older version by name and by force alone", async () => {
    world.publish("0.0.9");
    world.publish("0.1.0");
    expect((await world.update({})).code).toBe(0);
    expectRefused(await world.update({ version: "0.0.9" }), "0.0.9 is older than this version, 0.1.0: --force");
    expect(await world.update({ version: "0.0.9", force: true })).toMatchObject({ code: 0 });
    expect(started()).toBe("0.0.9");
    expect((await world.update({ version: "../0.0.9" })).code).toBe(2);
    expect((await world.update({ version: "0.0.8" })).error).toContain("there is no");
  });

  test("is told to whoever installs npm packages, images and checkouts", async () => {
    world.publish("0.2.0");
    writeFileSync(join(world.folder, "package.json"), '{"name":"@acme/engine"}');
    const { context } = world.context();
    for (const [kind, command] of [
      ["npm", "npm install --global @acme/engine@latest"],
      ["image", "pull the image"],
      ["checkout", "git pull && npm ci"],
    ] as const) {
      const distribution = { kind, program: world.program, folder: world.folder };
      const setting = { distribution, manager: undefined, execPath: "node", publicKeys: [world.key.publicKey] };
      await expect(runUpdate(context, { restart: true }, setting)).rejects.toThrow(command);
      expect(await runUpdate(context, { restart: true, check: true }, setting)).toBe(10);
    }
  });

  test("does not run beside another one", async () => {
    world.publish("0.2.0");
    const lock = new DatabaseSync(join(world.home, "update.lock"));
    lock.exec("BEGIN EXCLUSIVE");
    expectRefused(await world.update(), "another `engine update` is running");
    lock.close();
    expect((await world.update()).code).toBe(0);
  });
});

describe("what is published", () => {
  const manifest = (folder: string) => join(folder, "..", "release.json");

  test("must be signed by a key of this program", async () => {
    world.publish("0.2.0", { after: (folder) => appendFileSync(manifest(folder), " ") });
    expectRefused(await world.update(), /signature of .* does not fit the file: do not install/);
    const text = manifestText(exampleRelease());
    world.writeManifest(world.releases, text, makeSigningKey().secretKeyText);
    expectRefused(await world.update(), "is by a key that this program does not trust");
    writeFileSync(join(world.releases, "release.json.minisig"), "");
    expectRefused(await world.update(), "is not one of minisign");
  });

  test("must be of this product, and in a format that is known", async () => {
    world.publish("0.2.0");
    const text = manifestText(exampleRelease());
    world.writeManifest(world.releases, text.replace('"engine"', '"other"'));
    expectRefused(await world.update(), "is not for this program, it is of another product");
    world.writeManifest(world.releases, text.replace('"format": 1', '"format": 9'));
    expectRefused(await world.update(), "a format of later versions");
  });

  test("must not have expired", async () => {
    world.publish("0.2.0", { release: { expires_at: "2026-11-02T00:00:00Z" } });
    world.clock = new ManualClock(Date.parse("2026-11-02T00:00:00Z"));
    expectRefused(await world.update(), "expired on 2026-11-02T00:00:00Z, so newer releases may be held back");
  });

  test("must not be older than what was seen before, nor another version than asked for", async () => {
    world.publish("0.3.0");
    expect((await world.update({ check: true })).code).toBe(10);
    world.publish("0.2.0");
    expectRefused(await world.update(), "says that 0.2.0 is the newest version, but 0.3.0 of 2026-11-01");
    expect(world.remembered()).toMatchObject({ newest: { version: "0.3.0" } });
    writeFileSync(join(world.home, "update.json"), "{");
    expect((await world.update({ check: true })).code).toBe(10);
    for (const file of ["release.json", "release.json.minisig"]) {
      writeFileSync(join(world.releases, "0.2.0", file), readFileSync(join(world.releases, "0.3.0", file)));
    }
    expectRefused(await world.update({ version: "0.2.0" }), "has version 0.3.0 in the place of 0.2.0");
  });

  test("must be what was signed: no byte more, fewer or other", async () => {
    const name = `engine-0.2.0-${process.platform}-${process.arch}`;
    world.publish("0.2.0", { after: (folder) => appendFileSync(join(folder, name), "#") });
    expectRefused(await world.update(), /is longer than \d+ bytes: try again/);
    world.publish("0.2.0", { after: (folder) => writeFileSync(join(folder, name), "#!/bin/sh\n") });
    expectRefused(await world.update(), /ends after 10 of \d+ bytes/);
    const other = fakeProgram("0.2.0").replace("exit 0", "exit 1");
    world.publish("0.2.0", { after: (folder) => writeFileSync(join(folder, name), other) });
    expectRefused(await world.update(), "is not what was signed");
  });

  test("must be for this machine, and for its catalog", async () => {
    world.publish("0.2.0", {
      release: { artefacts: exampleRelease().artefacts.map((one) => Object.assign(one, { kind: "sbom" })) },
    });
    expectRefused(await world.update(), "release 0.2.0 has no single-file for");
    const database = new DatabaseSync(join(world.home, "catalog.db"));
    world.publish("0.2.0");
    database.exec("CREATE TABLE x (n); PRAGMA user_version = 3");
    expectRefused(await world.update(), /cannot tell whether 0\.2\.0 may run on .*catalog\.db is no catalog but/);
    // Of a version that does not say yet who may run on what it wrote.
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = 17`);
    const before = { sqlite: { reads_from: 1, writes: 16 }, postgres: { reads_from: 1, writes: 1 } };
    world.publish("0.2.0", { release: { catalog: before } });
    expectRefused(
      await world.update(),
      /has schema 17, which needs a program that knows 17, and that version knows 16/,
    );
    database.exec("CREATE TABLE meta (oldest_schema); INSERT INTO meta VALUES (41); PRAGMA user_version = 42");
    world.publish("0.2.0");
    expectRefused(await world.update(), /schema 42, which needs a program that knows 41, and that version knows 40/);
    database.exec("PRAGMA user_version = 5");
    const catalog = { sqlite: { reads_from: 6, writes: 40 }, postgres: { reads_from: 1, writes: 1 } };
    world.publish("0.2.0", { release: { catalog } });
    expectRefused(await world.update(), "reads from 6 on; update to a version in between first");
    // Later migrations only added something.
    database.exec("UPDATE meta SET oldest_schema = 40; PRAGMA user_version = 42");
    database.close();
    expect(await world.update()).toMatchObject({ code: 0 });
  });

  test("must run here", async () => {
    world.publish("0.2.0", { program: fakeProgram("0.2.1") });
    expectRefused(await world.update(), "0.2.0 does not run on this machine");
    world.publish("0.2.0", { program: fakeProgram("0.2.0", "echo 'no AVX' >&2; exit 1") });
    expectRefused(await world.update(), /does not run on this machine \(no AVX\)/);
    world.publish("0.2.0", { program: "\x7fELF of another machine" });
    expectRefused(await world.update(), "0.2.0 does not run on this machine");
  });
});

describe("a place", () => {
  test.skipIf(lacks("root", "mounts", "mount"))("without room is left as it was", async () => {
    mkdirSync(join(world.folder, "opt"), { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", join(world.folder, "opt")]);
    try {
      mkdirSync(dirname(world.program));
      world.setProgram("0.1.0");
      world.publish("0.2.0", { program: fakeProgram("0.2.0") + "#".repeat(200_000) });
      expectRefused(await world.update(), /no space is left in .*: free 1 MB there/);
    } finally {
      execFileSync("umount", [join(world.folder, "opt")]);
    }
  });

  test.skipIf(lacks("read-only files"))("that may not be written is left as it was", async () => {
    world.publish("0.2.0");
    const folder = dirname(world.program);
    // Root may write whatever the mode says, but for this.
    const [forbid, allow] =
      process.getuid?.() === 0
        ? [
            ["chattr", "+i"],
            ["chattr", "-i"],
          ]
        : [
            ["chmod", "a-w"],
            ["chmod", "u+w"],
          ];
    const run = ([program = "", word = ""]: readonly string[]) => execFileSync(program, [word, folder]);
    run(forbid ?? []);
    try {
      expectRefused(await world.update(), "may not be written by this user: run it as the owner");
    } finally {
      run(allow ?? []);
    }
  });
});

describe("a server", () => {
  async function serving(answer: RequestListener, run: () => Promise<void>): Promise<void> {
    const server = createServer(answer).listen(0, "127.0.0.1");
    try {
      await eventually(() => server.listening);
      world.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/engine`;
      await run();
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  const fileOf = (url = "") => join(world.releases, ...url.split("/").slice(2));

  test("gives what a folder gives", async () => {
    world.publish("0.2.0");
    await serving(
      (request, response) => {
        if (request.url?.endsWith("moved")) response.end(readFileSync(fileOf(request.url.replace(/\/moved$/, ""))));
        else response.writeHead(302, { location: `${request.url}/moved` }).end();
      },
      async () => expect(await world.update()).toMatchObject({ code: 0 }),
    );
    expect(started()).toBe("0.2.0");
  });

  test.each<[string, RequestListener, RegExp]>([
    ["is not there", (_, response) => response.writeHead(404).end(), /answers 404: there is no such release/],
    ["fails", (_, response) => response.writeHead(503).end(), /answers 503: try again later/],
    [
      "leads to a file",
      (_, response) => response.writeHead(302, { location: "file:///etc/passwd" }).end(),
      /redirects to file:/,
    ],
    [
      "leads in a circle",
      (request, response) => response.writeHead(302, { location: request.url }).end(),
      /more than 5 times/,
    ],
    ["sends without end", (_, response) => flood(response), /is longer than 1048576 bytes/],
    ["stops in between", (_, response) => cut(response), /cannot read .*: try again|ends|closed/],
    ["hangs up", (request) => request.socket.destroy(), /cannot read http/],
  ])("that %s changes nothing", async (_, answer, reason) => {
    world.publish("0.2.0");
    await serving(answer, async () => expectRefused(await world.update(), reason));
  });

  test("that cuts a download changes nothing", async () => {
    world.publish("0.2.0");
    await serving(
      (request, response) => {
        const bytes = readFileSync(fileOf(request.url));
        if (!request.url?.endsWith(process.arch)) response.end(bytes);
        else
          response
            .writeHead(200, { "content-length": bytes.length })
            .write(bytes.subarray(0, 20), () => response.destroy());
      },
      async () => expectRefused(await world.update(), /cannot read http.*engine-0.2.0/),
    );
  });

  function flood(response: Parameters<RequestListener>[1]): void {
    const piece = Buffer.alloc(65_536, "{");
    const more = () => {
      while (!response.destroyed && response.write(piece));
    };
    response.on("drain", more);
    more();
  }

  function cut(response: Parameters<RequestListener>[1]): void {
    response.writeHead(200, { "content-length": "100" }).write("{", () => response.destroy());
  }
});

describe("the service", () => {
  /** A manager whose server answers as the program does that is there when it restarts. */
  async function withService(isWell: (version: string) => boolean, run: (restarts: string[]) => Promise<void>) {
    let version = "0.1.0";
    const restarts: string[] = [];
    const server = createServer((_, response) => {
      response.end(JSON.stringify({ status: isWell(version) ? "ok" : "draining", version }));
    }).listen(0, "127.0.0.1");
    await eventually(() => server.listening);
    const file = join(world.folder, "unit");
    const { port } = server.address() as AddressInfo;
    const facts = { command: [world.program], listen: { host: "127.0.0.1", port }, home: world.home, configFile: "/c" };
    writeFileSync(file, `# engine service install wrote this file: ${JSON.stringify(facts)}\n`);
    world.manager = {
      file,
      logCommand: "journalctl",
      state: () => Promise.resolve({ isEnabled: true, isRunning: true, runningSinceMs: undefined, detail: "" }),
      restart: () => {
        version = started();
        restarts.push(version);
        return Promise.resolve();
      },
    } as unknown as ServiceManager;
    try {
      await run(restarts);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  test("runs the new program", async () => {
    world.publish("0.2.0");
    await withService(
      () => true,
      async (restarts) => {
        expect(await world.update()).toMatchObject({ code: 0, out: expect.stringContaining("the service runs it") });
        expect(restarts).toEqual(["0.2.0"]);
      },
    );
  });

  test("is left alone where that was asked for, or it is another program's", async () => {
    world.publish("0.2.0");
    await withService(
      () => true,
      async (restarts) => {
        expect(await world.update({ restart: false })).toMatchObject({
          code: 0,
          out: expect.stringContaining("keeps its version"),
        });
        writeFileSync(
          join(world.folder, "unit"),
          readFileSync(join(world.folder, "unit"), "utf8").replace("bin/engine", "bin/other"),
        );
        expect(await world.update({ force: true })).toMatchObject({ code: 0 });
        expect(restarts).toEqual([]);
      },
    );
  });

  test("gets the old program back where the new one does not come up", async () => {
    world.publish("0.2.0");
    // Each look at a time of the test costs none.
    const clock = new ManualClock();
    world.clock = {
      nowMs: () => Date.parse("2026-11-05"),
      monotonicMs: () => clock.monotonicMs(),
      every: () => ({ cancel: () => undefined }),
      after: (ms, task) => {
        clock.advance(ms * 50);
        setImmediate(task);
        return { cancel: () => undefined };
      },
    };
    await withService(
      (version) => version === "0.1.0",
      async (restarts) => {
        const outcome = await world.update();
        expect(outcome).toMatchObject({
          code: 1,
          error: expect.stringMatching(
            /0.2.0 does not start \(the server is draining\): the version before is back and answers/,
          ),
        });
        expect(restarts).toEqual(["0.2.0", "0.1.0"]);
        expect(started()).toBe("0.1.0");
      },
    );
  });
});

describe("an archive", () => {
  beforeEach(() => {
    world.remove();
    world = new UpdateWorld("archive");
    const original = join(world.folder, "opt", "lib", "engine", "dist");
    mkdirSync(original, { recursive: true });
    writeFileSync(join(original, "distribution.json"), '{"kind":"archive"}');
  });

  const versions = () => readdirSync(join(world.folder, "opt", ARCHIVE_VERSIONS));

  test("is unpacked beside itself, and starts by the same launcher, also through links", async () => {
    for (const [version, before] of [
      ["0.2.0", "0.1.0"],
      ["0.3.0", "0.2.0"],
      ["0.4.0", "0.3.0"],
    ] as const) {
      world.publish(version);
      expect(await world.update({}, before)).toMatchObject({ code: 0, error: "" });
      expect([started(), started(`${world.program}.before`)]).toEqual([version, before]);
    }
    expect(
      versions()
        .map((name) => name.slice(0, 5))
        .toSorted(),
    ).toEqual(["0.3.0", "0.4.0"]);
    // The folder as it was first unpacked serves nobody any more.
    expect(existsSync(join(world.folder, "opt", "lib", "engine"))).toBe(false);
    mkdirSync(join(world.folder, "a b"));
    symlinkSync("../opt/bin/engine", join(world.folder, "a b", "one"));
    symlinkSync(join(world.folder, "a b", "one"), join(world.folder, "two"));
    expect(started(join(world.folder, "two"))).toBe("0.4.0");
  });

  const launcher = tarEntry("engine/bin/engine", fakeProgram("0.2.0"));
  const hostile = (path: string, more?: Partial<TarHeader>) => tarGz(launcher, tarEntry(path, "x", more));

  /** With another byte so far before its end. */
  const withLast = (archive: Buffer, from: number): Buffer => {
    archive.writeUInt8(archive.readUInt8(archive.length - from) ^ 1, archive.length - from);
    return archive;
  };

  test.each<[string, Buffer, RegExp]>([
    ["a path that leads up", hostile("engine/../../../evil"), /the archive has the path/],
    ["an absolute path", hostile("/evil"), /the archive has the path/],
    ["a path of nothing", hostile("engine//evil"), /the archive has the path/],
    ["a path with another system's slashes", hostile("engine\\..\\evil"), /the archive has the path/],
    ["a link", hostile("engine/link", { type: "symlink", target: "/etc" }), /neither a file nor a folder/],
    ["a hard link", hostile("engine/link", { type: "link", target: "/etc/passwd" }), /neither a file nor a folder/],
    ["a file twice", hostile("engine/bin/engine"), /EEXIST|exist/],
    ["a file below a file", hostile("engine/bin/engine/x"), /EEXIST|exist|ENOTDIR/],
    ["more than memory", hostile("engine/big", { sizeBytes: 2 ** 40 }), /unpacks to more than/],
    ["no launcher", tarGz(tarEntry("engine/README", "x")), /has no bin\/engine/],
    ["no end", tarGz(launcher).subarray(0, -20), /the archive is damaged: unexpected end/],
    ["no checksum", tarGz(launcher).subarray(0, -4), /the archive is damaged: unexpected end/],
    ["another checksum", withLast(tarGz(launcher), 5), /the archive is damaged: incorrect data check/],
    ["something after its end", tarGz(launcher, TAR_END, launcher), /goes on after its end/],
    ["nothing of an archive", Buffer.from("hello"), /the archive is damaged/],
  ])("with %s changes nothing", async (_, program, reason) => {
    world.publish("0.2.0", { program });
    expectRefused(await world.update(), reason);
    expect(versions()).toEqual([]);
    expect(existsSync(join(world.folder, "evil"))).toBe(false);
  });
});

describe("the nudge", () => {
  const DAY_MS = 86_400_000;
  /** A command on a terminal. */
  async function nudged(env: Readonly<Record<string, string>> = {}, isTTY = true): Promise<string> {
    world.env = env;
    const { context, error } = world.context("0.1.0", isTTY);
    const looks = join(world.folder, "looks");
    const command = ["/bin/sh", "-c", `echo "$@" >>'${looks}'`, "sh"];
    await nudge(context, { kind: "single-file", command });
    return error();
  }
  const looks = () =>
    existsSync(join(world.folder, "looks")) ? readFileSync(join(world.folder, "looks"), "utf8") : "";

  test("tells once a day of what an earlier look has found", async () => {
    const clock = new ManualClock(Date.parse("2026-11-05"));
    world.clock = clock;
    world.publish("0.2.0");
    expect(await nudged()).toBe("");
    await eventually(() => looks() === "update --check\n");
    await world.update({ check: true });
    expect(await nudged()).toBe("");
    clock.advance(DAY_MS);
    expect(await nudged()).toBe("engine 0.2.0 is available (this is 0.1.0): engine update\n");
    expect(await nudged()).toBe("");
    await eventually(() => looks() === "update --check\nupdate --check\n");
  });

  test.each([
    ["in CI", { CI: "true" }, true],
    ["where it is turned off", { ENGINE_NO_UPDATE_CHECK: "0" }, true],
    ["without a terminal", {}, false],
    ["with a home that cannot be", { ENGINE_HOME: "/dev/null/home" }, true],
  ])("neither tells nor looks %s", async (_, env, isTTY) => {
    expect(await nudged(env as Record<string, string>, isTTY)).toBe("");
    expect(existsSync(join(world.home, "update.json"))).toBe(false);
  });
});
