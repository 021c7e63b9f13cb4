import { request as rawRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { filesCallHandler } from "../../src/sandbox/node/files/calls-handler.ts";
import { HOME, NEVER, openLab, put, type FilesLab } from "../../src/sandbox/node/files/files.test-kit.ts";
import { whyNoMachine } from "../../src/sandbox/node/files/machine.test-kit.ts";
import { parseRange } from "../../src/sandbox/control/routes/file-range.ts";
import { startSandboxApi, type SandboxApi } from "./sandboxes.test-kit.ts";

const reason = whyNoMachine();

describe.skipIf(reason !== "")(`the routes of files${reason === "" ? "" : `: skipped, ${reason}`}`, () => {
  let lab: FilesLab;
  let api: SandboxApi;
  let files: string;
  beforeAll(async () => {
    lab = await openLab({ isDurable: false });
    api = await startSandboxApi();
    api.onCall.handle = filesCallHandler(lab.files);
    const { path } = await api.make({}, "creating", "running");
    files = `${path}/files`;
  });
  afterAll(async () => {
    await api.close();
    await lab.remove();
  });

  type Init = RequestInit & { by?: string };
  async function ask(method: string, path: string, { by = "ann", headers, ...init }: Init = {}) {
    const sent = { Authorization: `Bearer ${by}`, ...(headers as Record<string, string>) };
    const response = await fetch(api.url + path, { ...init, method, headers: sent });
    const bytes = Buffer.from(await response.arrayBuffer());
    const text = bytes.toString("utf8");
    const json: unknown = /^[[{]/.test(text) ? JSON.parse(text) : undefined;
    const code = (json as { error?: { code: string } } | undefined)?.error?.code ?? "";
    return { status: response.status, code, headers: response.headers, text, json, bytes };
  }

  /** Sends a path as it is: `fetch` would tidy it. */
  function askRaw(method: string, path: string, headers: Record<string, string> = {}): Promise<string> {
    return new Promise((resolve, reject) => {
      const sent = { Authorization: "Bearer ann", ...headers };
      const asked = rawRequest(`${api.url}/`, { method, path, headers: sent }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        response.on("end", () => resolve(`${response.statusCode} ${text}`));
      });
      asked.on("error", reject).end();
    });
  }

  test("a file goes in, is listed, comes out, and goes", async () => {
    const body = Buffer.from([0, 1, 2, 255, 254]);
    const made = await ask("PUT", `${files}/home/agent/dir/data.bin?mode=0640`, { body });
    expect(made.status).toBe(200);
    expect(made.json).toMatchObject({ path: `${HOME}/dir/data.bin`, size: 5, is_dir: false, mode: 0o640 });
    expect((made.json as { modified_at: string }).modified_at).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const listed = await ask("GET", `${files}?path=/home/agent/dir`);
    const { modified_at, ...entry } = (listed.json as Record<string, unknown>[])[0] ?? {};
    expect(entry).toEqual({ path: `${HOME}/dir/data.bin`, size: 5, is_dir: false, mode: 0o640 });
    expect(typeof modified_at).toBe("string");
    const got = await ask("GET", `${files}/home/agent/dir/data.bin`);
    expect([got.status, got.headers.get("content-type"), got.headers.get("content-length")]).toEqual([
      200,
      "application/octet-stream",
      "5",
    ]);
    expect(got.bytes.equals(body)).toBe(true);
    expect(got.headers.get("etag")).toBe(made.headers.get("etag"));
    expect(Math.abs(Date.parse(got.headers.get("last-modified") ?? "") - Date.now())).toBeLessThan(60_000);
    const head = await ask("HEAD", `${files}/home/agent/dir/data.bin`);
    expect([head.status, head.headers.get("content-length"), head.headers.get("etag"), head.text]).toEqual([
      200,
      "5",
      got.headers.get("etag"),
      "",
    ]);
    expect((await ask("DELETE", `${files}/home/agent/dir`)).code).toBe("conflict");
    expect((await ask("DELETE", `${files}/home/agent/dir?recursive=true`)).status).toBe(204);
    expect(await ask("GET", `${files}/home/agent/dir/data.bin`)).toMatchObject({ status: 404, code: "file_not_found" });
    expect(await ask("GET", `${files}?path=/home/agent/dir`)).toMatchObject({ status: 404, code: "file_not_found" });
  });

  test("without a path, the root is listed", async () => {
    const { json } = await ask("GET", files);
    expect((json as { path: string }[]).map((entry) => entry.path)).toContain("/home");
  });

  test("ranges and conditions", async () => {
    const path = `${files}/home/agent/digits`;
    const etag = (await ask("PUT", path, { body: "0123456789" })).headers.get("etag") ?? "";
    const ranged = async (range: string, more: Record<string, string> = {}) => {
      const { status, text, headers } = await ask("GET", path, { headers: { Range: range, ...more } });
      return [status, status === 416 ? "" : text, headers.get("content-range")];
    };
    expect(await ranged("bytes=2-4")).toEqual([206, "234", "bytes 2-4/10"]);
    expect(await ranged("bytes=-2")).toEqual([206, "89", "bytes 8-9/10"]);
    expect(await ranged("bytes=8-100")).toEqual([206, "89", "bytes 8-9/10"]);
    expect(await ranged("bytes=10-")).toEqual([416, "", "bytes */10"]);
    expect(await ranged("bytes=-0")).toEqual([416, "", "bytes */10"]);
    expect(await ranged("bytes=1-2,4-5")).toEqual([200, "0123456789", null]);
    expect(await ranged("bytes=2-4", { "If-Range": etag })).toEqual([206, "234", "bytes 2-4/10"]);
    expect(await ranged("bytes=2-4", { "If-Range": '"old"' })).toEqual([200, "0123456789", null]);
    const status = async (method: string, headers: Record<string, string>, body?: string) =>
      (await ask(method, path, { headers, ...(body !== undefined && { body }) })).status;
    expect(await status("GET", { "If-None-Match": etag })).toBe(304);
    expect(await status("GET", { "If-None-Match": '"old"' })).toBe(200);
    expect(await status("GET", { "If-Match": '"old"' })).toBe(412);
    expect(await status("GET", { "If-Match": "nonsense" })).toBe(400);
    expect(await status("PUT", { "If-None-Match": "*" }, "x")).toBe(412);
    expect(await status("PUT", { "If-None-Match": etag }, "x")).toBe(400);
    expect(await status("PUT", { "If-Match": '"old"' }, "x")).toBe(412);
    expect(await status("DELETE", { "If-Match": '"old"' })).toBe(412);
    expect((await ask("GET", path)).text).toBe("0123456789");
    expect(await status("PUT", { "If-Match": `"old", ${etag}` }, "new")).toBe(200);
    expect(await status("PUT", { "If-Match": etag }, "newer")).toBe(412);
    expect(await status("DELETE", { "If-Match": "*" })).toBe(204);
  });

  test("names are bytes: spaces, signs, slashes and what is no text", async () => {
    const name = "a b+%?#ü😀💀";
    await ask("PUT", `${files}/home/agent/odd/${encodeURIComponent(name)}`, { body: "1" });
    expect((await askRaw("PUT", `${files}/home/agent%2Fodd%2F%FF%fe`)).slice(0, 3)).toBe("200");
    expect(
      await lab.machine.sh(`cd ${HOME}/odd; for f in *; do printf '%s' "$f" | od -An -tx1; done | tr -d ' \\n'`),
    ).toBe(`${Buffer.from(name).toString("hex")}fffe`);
    const listed = await ask("GET", `${files}?path=%2Fhome/agent/odd`);
    expect((listed.json as { path: string; encoded_path?: string }[]).map((e) => [e.path, e.encoded_path])).toEqual([
      [`${HOME}/odd/${name}`, undefined],
      [`${HOME}/odd/\ufffd\ufffd`, `${HOME}/odd/%FF%FE`],
    ]);
    expect((await askRaw("GET", `${files}${HOME}/odd/%FF%FE`)).slice(0, 3)).toBe("200");
    expect((await askRaw("GET", `${files}?path=${HOME}/odd/&after=%FE`)).slice(0, 200)).toContain("%FF%FE");
    for (const bad of ["/a%00b", "/%zz", `/${"n".repeat(5_000)}`]) {
      expect(await askRaw("GET", files + bad)).toMatch(/^400 .*invalid_parameter/);
    }
    expect(await askRaw("GET", `${files}/home/../../../../etc/../home/agent/odd/%FF%FE`)).toMatch(/^200/);
    expect(await askRaw("GET", `${files}/../../../../etc/shadow`)).toMatch(/^404 .*file_not_found/);
    expect(await askRaw("GET", `${files}/`)).toMatch(/^404 .*not_found/);
  });

  test("the rest of a long listing is where Link says", async () => {
    await lab.machine.sh(`mkdir '${HOME}/m y'; cd '${HOME}/m y'; seq -f n%05.0f 1 10003 | xargs touch`);
    const first = await ask("GET", `${files}?path=${HOME}/m+y`);
    expect(first.json).toHaveLength(10_000);
    const next = /^<([^>]+)>; rel="next"$/.exec(first.headers.get("link") ?? "")?.[1] ?? "";
    const rest = await ask("GET", next);
    expect((rest.json as { path: string }[]).map((entry) => entry.path.slice(-6))).toEqual([
      "n10001",
      "n10002",
      "n10003",
    ]);
    expect(rest.headers.get("link")).toBe(null);
  });

  test("a body that is too large, in part, or coded, is refused", async () => {
    const path = `${files}/home/agent/refused`;
    const tooLarge = askRaw("PUT", path, { "Content-Length": String(1024 ** 3 + 1) });
    expect(await tooLarge).toMatch(/^413 .*body_too_large/);
    const refused = async (headers: Record<string, string>): Promise<string> =>
      (await ask("PUT", path, { body: "x", headers })).code;
    expect(await refused({ "Content-Range": "bytes 0-0/2" })).toBe("invalid_header");
    expect(await refused({ "Content-Encoding": "gzip" })).toBe("unsupported_media_type");
    expect((await ask("PUT", `${path}?mode=999`, { body: "x" })).code).toBe("invalid_parameter");
    expect((await ask("GET", path)).code).toBe("file_not_found");
    expect((await ask("PUT", path, { body: "x", headers: { "Content-Type": "text/x-anything" } })).status).toBe(200);
  });

  test("a client that leaves in the middle of an upload leaves nothing", async () => {
    const left = new Promise<void>((resolve) => {
      const options = {
        method: "PUT",
        path: `${files}/home/agent/left/file`,
        headers: { Authorization: "Bearer ann" },
      };
      const asked = rawRequest(`${api.url}/`, options);
      asked.on("error", () => resolve());
      asked.write(Buffer.alloc(2_000_000));
      setTimeout(() => asked.destroy(), 300);
    });
    await left;
    await expect.poll(() => lab.machine.sh(`ls -A ${HOME} | grep -c -e left -e put || true`)).toBe("0\n");
  });

  test("is of its tenant, by role, and in the states that have files", async () => {
    await put(lab.files, `${HOME}/mine`, "mine");
    const path = `${files}/home/agent/mine`;
    expect((await ask("GET", path, { by: "bob" })).code).toBe("sandbox_not_found");
    expect((await ask("DELETE", path, { by: "bob" })).code).toBe("sandbox_not_found");
    expect((await ask("GET", path, { by: "root" })).text).toBe("mine");
    expect((await ask("GET", path, { by: "reader" })).text).toBe("mine");
    expect((await ask("PUT", path, { by: "reader", body: "x" })).code).toBe("forbidden");
    expect((await ask("DELETE", path, { by: "reader" })).code).toBe("forbidden");
    expect((await ask("GET", path, { by: "nobody" })).code).toBe("unauthorized");
    expect((await lab.files.stat(`${HOME}/mine`, NEVER)).size).toBe(4);
    const { path: creating } = await api.make({}, "creating");
    expect((await ask("GET", `${creating}/files`)).code).toBe("sandbox_invalid_state");
    expect((await ask("PUT", `${creating}/files/x`, { body: "x" })).code).toBe("sandbox_invalid_state");
  });
});

describe("parseRange", () => {
  test.each([
    ["bytes=0-0", { start: 0, end: 0 }],
    ["bytes=5-", { start: 5 }],
    ["bytes=-5", { start: -5 }],
    [" Bytes = 1 - 2 ", { start: 1, end: 2 }],
    ["bytes=-0", { start: Number.MAX_SAFE_INTEGER }],
    ["bytes=5-4", undefined],
    ["bytes=-", undefined],
    ["bytes=1-2,3-4", undefined],
    ["lines=1-2", undefined],
    [undefined, undefined],
  ])("%s", (header, range) => expect(parseRange(header)).toEqual(range));
});
