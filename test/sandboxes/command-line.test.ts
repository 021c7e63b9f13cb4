import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runHere, type RunOptions } from "../../src/cli/cli.test-kit.ts";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { sandboxServer, TIMEOUT_MS } from "./server.test-kit.ts";

describeInCage("the command line and a real sandbox", () => {
  const server = sandboxServer();
  let folder: string;
  const run = (argv: readonly string[], options: RunOptions = {}) =>
    runHere(["sandbox", argv[0] ?? "", "--server", server.url, ...argv.slice(1)], options);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "engine-command-line-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it("makes one, works in it, and deletes it", { timeout: TIMEOUT_MS }, async () => {
    const script = join(folder, "set-up.sh");
    await writeFile(script, "echo set up; id -u\n");
    const flags = ["--memory", "256", "--disk", "256", "--env", "COLOUR=red", "--script", script];
    const made = await run(["create", ...flags]);
    expect([made.code, made.stderr]).toEqual([0, ""]);
    const id = made.stdout.trim();
    expect(await run(["exec", id, "--", "sh", "-c", "echo $COLOUR; id -u; echo oops >&2; exit 7"])).toEqual({
      code: 7,
      stdout: "red\n1000\n",
      stderr: "oops\n",
    });
    expect((await run(["exec", id, "sh", "-c", "kill -9 $$"])).code).toBe(137);
    expect((await run(["exec", "-i", id, "wc", "-c"], { input: Buffer.alloc(1_000_000) })).stdout.trim()).toBe(
      "1000000",
    );
    const [here, back] = [join(folder, "a b.sh"), join(folder, "back")];
    await writeFile(here, "#!/bin/sh\necho ran\n", { mode: 0o755 });
    expect(await run(["cp", here, `${id}:/home/agent/`])).toEqual({ code: 0, stdout: "", stderr: "" });
    expect((await run(["exec", id, "/home/agent/a b.sh"])).stdout).toBe("ran\n");
    expect((await run(["cp", `${id}:/home/agent/a b.sh`, back])).code).toBe(0);
    expect(await readFile(back, "utf8")).toBe("#!/bin/sh\necho ran\n");
    await run(["exec", "--log", id, "echo", "logged"]);
    await expect.poll(async () => (await run(["logs", id])).stdout).toBe("set up\n0\nlogged\n");
    expect((await run(["pause", id])).stdout).toBe(`${id} is paused\n`);
    expect((await run(["exec", id, "true"])).stderr).toBe("error: the sandbox is paused: this needs running\n");
    expect((await run(["resume", id])).code).toBe(0);
    expect((await run(["rm", id])).stdout).toBe(`deleted ${id}\n`);
    await server.client.reaches(id, "gone");
  });
});
