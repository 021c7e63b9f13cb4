import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { promisify } from "node:util";
import { Readable } from "node:stream";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../core/gates.test-kit.ts";
import { makeRepository, startGitServer, type GitServer } from "../git-server.test-kit.ts";
import { PROXY_PORT } from "../../contract/spec.ts";
import { gatewayEnvironment } from "./environment.ts";
import { openWorld, PAT, repo, use, type World } from "./gateway.test-kit.ts";

const run = promisify(execFile);

let world: World;
const folder = mkdtempSync(join(tmpdir(), "engine-gateway-"));
const BASIC = `Basic ${Buffer.from("x-access-token:real-secret-token").toString("base64")}`;

beforeAll(async () => void (world = await openWorld()));
afterEach(() => world.closeAll());
afterAll(async () => {
  await world.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The environment of a sandbox whose gateway listens elsewhere. */
function environment(port: number, env: Record<string, string>): Record<string, string> {
  const moved = Object.entries(env).map(([name, value]) => [name, value.replace(`:${PROXY_PORT}/`, `:${port}/`)]);
  const own = { PATH: process.env["PATH"] ?? "", HOME: folder, GIT_TERMINAL_PROMPT: "0", NO_PROXY: "127.0.0.1" };
  return { ...own, ...Object.fromEntries(moved) };
}

const author = ["-c", "user.name=t", "-c", "user.email=t@example.com"];

describe.skipIf(lacks("git"))("git", () => {
  let git: GitServer;
  let open: GitServer;
  beforeAll(async () => {
    for (const name of ["app.git", "app-web.git"]) makeRepository(join(folder, name));
    git = await startGitServer(folder, { authorization: BASIC, tls: world.tls });
    open = await startGitServer(folder);
  });
  afterAll(() => {
    git.close();
    open.close();
  });

  it("clones and pushes, and knows nothing of the credential", async () => {
    const gitRepos = [repo(`https://git.test:${git.port}/app.git`)];
    const sandbox = await world.proxy({ gitRepos, values: { "cred-git": PAT } });
    const env = environment(sandbox.port, gatewayEnvironment({ gitRepos, envVars: {} }));
    const cwd = join(folder, "clone");
    // With `.git` and without it is the same repository.
    await run("git", ["clone", "-q", `https://git.test:${git.port}/app`, cwd], { env });
    writeFileSync(join(cwd, "file"), randomBytes(3_000_000).toString("base64"));
    await run("git", [...author, "commit", "-qam", "pushed"], { env, cwd });
    await run("git", ["push", "-q", "origin", "HEAD:pushed"], { env, cwd });
    const { stdout: head } = await run("git", ["rev-parse", "HEAD"], { env, cwd });
    const { stdout: there } = await run("git", ["-C", join(folder, "app.git"), "rev-parse", "pushed"]);
    expect(there).toBe(head);
    expect(readFileSync(join(cwd, ".git/config"), "utf8")).not.toMatch(/secret|Basic/);
    // The path of the listed repository alone was asked for, each time with the credential.
    expect(git.asked.every((path) => path.startsWith("/app.git/"))).toBe(true);
    expect(sandbox.log.every(({ refused }) => refused === undefined)).toBe(true);
    await run("git", ["clone", "-q", `http://127.0.0.1:${sandbox.port}/_engine/git/0`, join(folder, "direct")], {
      env,
    });
  });

  it("is sent on to a repository whose URL begins like the listed one, without the credential", async () => {
    const gitRepos = [repo(`http://git.test:${open.port}/app.git`)];
    const sandbox = await world.proxy({
      gitRepos,
      plainHttp: true,
      values: { "cred-git": PAT },
      allowedHosts: ["git.test"],
    });
    const env = environment(sandbox.port, gatewayEnvironment({ gitRepos, envVars: {} }));
    const proxied = { ...env, http_proxy: `http://127.0.0.1:${sandbox.port}` };
    const cwd = join(folder, "web");
    await run("git", ["clone", "-q", `http://git.test:${open.port}/app-web.git`, cwd], { env: proxied });
    expect(open.asked.every((path) => path.startsWith("/app-web.git/"))).toBe(true);
    expect(sandbox.asked).toEqual([]);
  });

  it("hears why a credential is not had", async () => {
    const gitRepos = [repo(`https://git.test:${git.port}/app.git`)];
    const sandbox = await world.proxy({ gitRepos, values: { "cred-git": () => Promise.reject(new Error("secret")) } });
    const env = environment(sandbox.port, gatewayEnvironment({ gitRepos, envVars: {} }));
    const cloned = run("git", ["clone", `https://git.test:${git.port}/app.git`, join(folder, "none")], { env });
    await expect(cloned).rejects.toThrow(/error: 502/);
  });
});

describe.skipIf(lacks("curl"))("curl", () => {
  it("reaches a host of a credential through the tunnel, trusting the sandbox's authority", async () => {
    const { port, seen } = await world.upstream((_request, response) => void response.end("hello"));
    const sandbox = await world.proxy({ credentials: [use("c", ["api.test"])], values: { c: PAT } });
    const bundle = join(folder, "ca.crt");
    writeFileSync(bundle, world.authority.certificate);
    const url = `https://api.test:${port}/a`;
    const curl = ["-sS", "--cacert", bundle, "-x", `http://127.0.0.1:${sandbox.port}`];
    const { stdout } = await run("curl", [...curl, "--http2", "-H", "Authorization: Bearer placeholder", url, url]);
    expect(stdout).toBe("hellohello");
    expect(seen.map(({ headers }) => headers["authorization"])).toEqual([
      ["Bearer real-secret-token"],
      ["Bearer real-secret-token"],
    ]);
    const untrusting = run("curl", ["-sS", "-x", `http://127.0.0.1:${sandbox.port}`, url]);
    await expect(untrusting).rejects.toThrow(/certificate/i);
  });
});

describe("large bodies", () => {
  const SIZE_BYTES = 100 * 1024 * 1024;
  const PIECE = randomBytes(64 * 1024);
  function* pieces() {
    for (let sent = 0; sent < SIZE_BYTES; sent += PIECE.length) yield PIECE;
  }

  it("go both ways without being held here", async () => {
    const digest = createHash("sha256");
    for (const piece of pieces()) digest.update(piece);
    const expected = digest.digest("hex");
    const gate = Promise.withResolvers<void>();
    const { port } = await world.upstream((request, response) => {
      if (request.method === "GET") {
        Readable.from(pieces()).pipe(response);
        return;
      }
      void gate.promise.then(async () => response.end(await digestOf(request)));
    });
    const providerUrls = { codex: `https://api.test:${port}` };
    const credentials = [use("c", ["api.test"], "OPENAI_API_KEY")];
    const sandbox = await world.proxy({ credentials, providerUrls, values: { c: PAT } });
    const send = (method: string) => {
      const headers = { Host: "127.0.0.1" };
      return httpRequest({ host: "127.0.0.1", port: sandbox.port, path: "/_engine/agent/", method, headers });
    };
    const upload = send("POST");
    let taken = 0;
    const source = Readable.from(pieces()).on("data", () => void (taken += PIECE.length));
    source.pipe(upload);
    const answered = once(upload, "response");
    // While the upstream does not read, no more is taken from inside than the sockets and buffers on the way hold.
    await expect.poll(async () => await isStill(() => taken)).toBe(true);
    expect(taken).toBeLessThan(SIZE_BYTES / 4);
    gate.resolve();
    const [answer] = (await answered) as [IncomingMessage];
    expect(Buffer.concat(await answer.toArray()).toString()).toBe(expected);

    const download = send("GET").end();
    const [reading] = (await once(download, "response")) as [IncomingMessage];
    await expect.poll(async () => await isStill(() => sandbox.proxy.traffic.receivedBytes)).toBe(true);
    expect(sandbox.proxy.traffic.receivedBytes).toBeLessThan(SIZE_BYTES / 4);
    expect(await digestOf(reading)).toBe(expected);
  });

  async function isStill(value: () => number): Promise<boolean> {
    const before = value();
    await new Promise((resolve) => void setTimeout(resolve, 200));
    return value() === before && before > 0;
  }

  async function digestOf(stream: Readable): Promise<string> {
    const hash = createHash("sha256");
    for await (const piece of stream) hash.update(piece as Buffer);
    return hash.digest("hex");
  }
});
