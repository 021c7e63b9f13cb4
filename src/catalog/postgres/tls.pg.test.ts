import { chmodSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { messageOf } from "../../core/errors.ts";
import { certificateFolder, makeCertificate } from "../../io/http/tls.test-kit.ts";
import { findPostgresPrograms } from "../../db/postgres/server-programs.ts";
import { NO_FSYNC, openTestCatalog, startTestServer, type TestServer } from "./postgres.test-kit.ts";

const programs = findPostgresPrograms()?.folder;

describe.skipIf(lacks("PostgreSQL"))("TLS", () => {
  let folder: string;
  let server: TestServer;
  let url: string;

  beforeAll(async () => {
    folder = certificateFolder();
    chmodSync(folder, 0o755);
    const authority = await makeCertificate(folder, "root");
    await makeCertificate(folder, "stranger");
    // A certificate for a name, while the tests connect to the address or to another name.
    await makeCertificate(folder, "server", { names: ["DNS:localhost"], authority });
    const settings = { ssl: "on", ssl_cert_file: join(folder, "server.crt"), ssl_key_file: join(folder, "server.key") };
    server = await startTestServer(programs ?? "", { ...NO_FSYNC, ...settings }, [join(folder, "server.key")]);
    url = await server.createDatabase();
    await server.query(url, "CREATE VIEW public.secured AS SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
  });
  afterAll(() => server.stop());

  const at = (host: string, query: string) => `${url.replace("127.0.0.1", host)}?${query}`;
  const root = () => `sslrootcert=${join(folder, "root.crt")}`;

  it.each([
    ["disable", false],
    ["prefer", true],
    ["allow", true],
    ["require", true],
  ])("sslmode=%s needs no certificate and encrypts: %s", async (mode, isSecured) => {
    const [row] = await server.query(at("127.0.0.1", `sslmode=${mode}`), "SELECT ssl FROM public.secured");
    expect(row).toEqual({ ssl: isSecured });
  });

  it("opens a catalog when the certificate is what the URL asks for", async () => {
    for (const address of [
      at("localhost", `sslmode=verify-full&${root()}`),
      at("127.0.0.1", `sslmode=verify-ca&${root()}`),
      at("127.0.0.1", `sslmode=require&${root()}`),
    ]) {
      expect(await server.query(address, "SELECT ssl FROM public.secured")).toEqual([{ ssl: true }]);
      await (await openTestCatalog(address)).close();
    }
  });

  it("refuses another name, another signer, and a server that has no TLS", async () => {
    const problem = async (address: string) => {
      try {
        await (await openTestCatalog(address, { acquireTimeoutMs: 1_000 })).close();
        return "none";
      } catch (error) {
        return messageOf(error);
      }
    };
    expect(await problem(at("127.0.0.1", `sslmode=verify-full&${root()}`))).toMatch(
      /does not match certificate|altnames/i,
    );
    const stranger = `sslrootcert=${join(folder, "stranger.crt")}`;
    for (const mode of ["require", "verify-ca", "verify-full"]) {
      expect(await problem(at("localhost", `sslmode=${mode}&${stranger}`))).toMatch(/certificate|signature/);
    }
    expect(await problem(at("localhost", "sslmode=verify-full"))).toMatch(/certificate/);
    const plain = await startTestServer(programs ?? "", NO_FSYNC);
    try {
      expect(await problem(`${plain.url("postgres")}?sslmode=require`)).toMatch(/the server has no TLS/);
      expect(await problem(`${plain.url("postgres")}?sslmode=prefer`)).toBe("none");
    } finally {
      await plain.stop();
    }
  });
});
