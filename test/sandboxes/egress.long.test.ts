import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createReadStream, readFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { certificateFolder, makeCertificate } from "../../src/io/http/tls.test-kit.ts";
import { startNameServer } from "../../src/sandbox/network/egress/proxy.test-kit.ts";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { fieldOf } from "./sandboxes.test-kit.ts";
import { sandboxServer, TIMEOUT_MS } from "./server.test-kit.ts";

/** A create request names addresses of name servers without ports: this one answers at the usual one. */
const NAME_SERVER = "127.53.0.1";
const NAMES = new Set(["exact.test", "a.wild.test", "wild.test", "other.test"]);
const NETWORK = { enabled: true, allowed_hosts: ["exact.test", "*.wild.test"], dns_servers: [NAME_SERVER] };

describeInCage("the way out of a real sandbox", () => {
  const folder = certificateFolder();
  const servers: Server[] = [];
  const asked: string[] = [];
  let names: Awaited<ReturnType<typeof startNameServer>>;
  let authority: Awaited<ReturnType<typeof makeCertificate>>;
  let http: number;
  let https: number;

  const listen = async (server: Server): Promise<number> => {
    servers.push(server.listen(0, "127.0.0.1"));
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  };

  beforeAll(async () => {
    names = await startNameServer((name) => (NAMES.has(name) ? "127.0.0.1" : undefined), {
      host: NAME_SERVER,
      port: 53,
    });
    const repository = makeRepository(join(folder, "repository.git"));
    const answer: RequestListener = (request, response) => {
      asked.push(`${request.headers.host?.split(":")[0]} ${request.url}`);
      if (request.url?.startsWith("/repository.git/") === true) {
        const file = createReadStream(join(repository, new URL(request.url, "http://x").pathname.slice(15)));
        file.on("error", () => response.writeHead(404).end()).pipe(response);
      } else response.end("x".repeat(request.url === "/large" ? 1_000_000 : 5));
    };
    authority = await makeCertificate(folder, "authority", { names: ["DNS:authority.test"] });
    const pair = await makeCertificate(folder, "origin", { names: ["DNS:exact.test", "DNS:*.wild.test"], authority });
    const tls = { cert: readFileSync(pair.certPath), key: readFileSync(pair.keyPath) };
    [http, https] = await Promise.all([listen(createServer(answer)), listen(createTlsServer(tls, answer))]);
  });
  afterAll(async () => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
    await names.close();
  });

  /** A server with one sandbox. */
  function sandboxOf(env: () => Record<string, string>) {
    const common = { ENGINE_SANDBOX_EGRESS_RANGES: "127.0.0.0/8" };
    const server = sandboxServer(() => ({ ...common, ...env() }));
    const { client } = server;
    let id: string;
    beforeAll(async () => {
      id = await client.create({ network: NETWORK });
      const url = `${server.url}/api/v1/sandboxes/${id}/files/home/agent/node?mode=0755`;
      // That of the image, if it has one, may be too old to know of proxies.
      const body = readFileSync(process.execPath);
      expect((await fetch(url, { method: "PUT", body })).status).toBe(200);
    }, TIMEOUT_MS);
    return {
      run: (command: string) => client.exec(id, command),
      stats: async () => (await client.call("GET", `/${id}/stats`)).json,
    };
  }

  const CURL = "curl -sS -o /dev/null -w '%{http_code}' --max-time 20";
  const node = (url: string) =>
    `./node -e 'fetch("${url}").then((a) => console.log(a.status), (e) => console.log(e.cause?.code ?? e.message))'`;
  const python = (url: string) =>
    `python3 -c 'import urllib.request; print(urllib.request.urlopen("${url}", timeout=20).status)'`;

  describe("with an authority of the operator", () => {
    const sandbox = sandboxOf(() => ({ ENGINE_SANDBOX_CA_FILE: authority.certPath }));

    it("leads to hosts that are allowed, and to no other", { timeout: TIMEOUT_MS }, async () => {
      const codeOf = async (url: string) => (await sandbox.run(`${CURL} ${url}`)).stdout;
      expect(await codeOf(`http://exact.test:${http}/plain`)).toBe("200");
      expect(await codeOf(`http://a.wild.test:${http}/plain`)).toBe("200");
      asked.length = 0;
      for (const host of ["other.test", "wild.test", "127.0.0.1", "[::1]", "b.exact.test"]) {
        expect([host, await codeOf(`http://${host}:${http}/ --noproxy ''`)]).toEqual([host, "403"]);
        const connect = "-s -o /dev/null -w '%{http_connect}' --noproxy '' --max-time 20";
        const { stdout } = await sandbox.run(`curl ${connect} https://${host}:${https}/`);
        expect([host, stdout]).toEqual([host, "403"]);
      }
      expect(asked).toEqual([]);
      expect([...names.asked.keys()].filter((name) => !["exact.test", "a.wild.test"].includes(name))).toEqual([]);
    });

    it("is found by git and Node.js, and trusts the authority", { timeout: TIMEOUT_MS }, async () => {
      for (const origin of [`http://exact.test:${http}`, `https://a.wild.test:${https}`]) {
        const { stdout } = await sandbox.run(`git ls-remote ${origin}/repository.git 2>&1`);
        expect([origin, stdout]).toEqual([origin, expect.stringMatching(/^[\da-f]{40}\tHEAD\n/)]);
        expect(await sandbox.run(node(`${origin}/node`))).toEqual({ stdout: "200\n", exitCode: 0 });
        expect(await sandbox.run(python(`${origin}/python`))).toEqual({ stdout: "200\n", exitCode: 0 });
        expect(await sandbox.run(`${CURL} ${origin}/curl`)).toEqual({ stdout: "200", exitCode: 0 });
      }
      asked.length = 0;
      expect(await sandbox.run(node(`http://other.test:${http}/`))).not.toMatchObject({ stdout: "200\n" });
      expect(asked).toEqual([]);
    });

    it("is the only one: there is neither DNS nor UDP nor ICMP", { timeout: TIMEOUT_MS }, async () => {
      const before = names.asked.get("exact.test");
      expect(await sandbox.run("getent hosts exact.test")).toEqual({ stdout: "", exitCode: 2 });
      expect(names.asked.get("exact.test")).toBe(before);
      const script = [
        "import socket, errno, sys",
        "def told(kind, protocol):",
        "  try: socket.socket(socket.AF_INET, kind, protocol).sendto(b'\\x08' + bytes(63), ('192.0.2.1', 53))",
        "  except OSError as e: return errno.errorcode[e.errno]",
        "def dialled():",
        "  try: socket.create_connection(('192.0.2.1', 80), 5)",
        "  except OSError as e: return errno.errorcode[e.errno]",
        "print(told(socket.SOCK_DGRAM, 0), told(socket.SOCK_DGRAM, 1), told(socket.SOCK_RAW, 1), dialled())",
      ].join("\n");
      const { stdout } = await sandbox.run(`python3 - <<'END'\n${script}\nEND`);
      const [udp, ping, raw, tcp] = stdout.trim().split(" ");
      expect([udp, raw, tcp]).toEqual(["ENETUNREACH", "EPERM", "ENETUNREACH"]);
      // Whether ordinary users may open such a socket at all is up to the kernel.
      expect(ping).toMatch(/^(ENETUNREACH|EACCES|EPERM)$/);
    });

    it("counts what goes through it", { timeout: TIMEOUT_MS }, async () => {
      const before = await sandbox.stats();
      const body = "--data-binary @- -o /dev/null -sS";
      const send = `head -c 2000000 /dev/zero | curl ${body} https://exact.test:${https}/large`;
      expect(await sandbox.run(send)).toMatchObject({ exitCode: 0 });
      const after = await sandbox.stats();
      const grown = (name: string) => Number(fieldOf(after, name)) - Number(fieldOf(before, name));
      expect(grown("network_rx_bytes")).toBeGreaterThan(1_000_000);
      expect(grown("network_rx_bytes")).toBeLessThan(1_200_000);
      expect(grown("network_tx_bytes")).toBeGreaterThan(2_000_000);
      expect(grown("network_tx_bytes")).toBeLessThan(2_200_000);
    });
  });

  describe("without an authority of the operator", () => {
    const sandbox = sandboxOf(() => ({}));

    it("trusts what the image trusts, and so not the server", { timeout: TIMEOUT_MS }, async () => {
      const url = `https://exact.test:${https}`;
      asked.length = 0;
      expect(await sandbox.run(`${CURL} http://exact.test:${http}/plain`)).toMatchObject({ stdout: "200" });
      // curl: the certificate of the peer cannot be checked.
      expect(await sandbox.run(`${CURL} ${url}/curl`)).toMatchObject({ exitCode: 60 });
      expect((await sandbox.run(node(`${url}/node`))).stdout).toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE\n");
      expect((await sandbox.run(`${python(`${url}/python`)} 2>&1`)).stdout).toContain("CERTIFICATE_VERIFY_FAILED");
      expect((await sandbox.run(`git ls-remote ${url}/repository.git 2>&1`)).stdout).toContain("certificate");
      expect(asked).toEqual(["exact.test /plain"]);
    });
  });
});

/** A bare repository with one commit, as files that can be served as they are. */
function makeRepository(path: string): string {
  const who = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
  const git = (...args: string[]) =>
    execFileSync("git", [...who, ...args], { cwd: path, encoding: "utf8", input: "" }).trim();
  execFileSync("git", ["init", "-q", "--bare", "-b", "main", path]);
  const tree = git("mktree");
  git("update-ref", "refs/heads/main", git("commit-tree", "-m", "first", tree));
  git("update-server-info");
  return path;
}
