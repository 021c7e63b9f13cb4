import { expect, it } from "vitest";
import { createRequest, toRequest } from "./create-request.ts";

function refusalOf(servers: unknown, body: Record<string, unknown> = {}): string | undefined {
  const request = { agent_provider: "codex", agent_config: { mcp_servers: servers }, ...body };
  const issue = createRequest.safeParse(request).error?.issues[0];
  return issue === undefined ? undefined : `${issue.path.map(String).join(".")}: ${issue.message}`;
}

const FIELD = "agent_config.mcp_servers";
const FAR = { name: "far", type: "http", url: "https://far.example/mcp" };

it("are programs, or URLs of HTTP", () => {
  for (const server of [
    {},
    { name: "a" },
    { name: "a", command: "" },
    { name: "a b", command: "x" },
    { name: "a", command: "x", url: "https://x" },
    { name: "a", command: "x", env: { "A=B": "x" } },
    { name: "a", command: "x", args: ["\0"] },
    { ...FAR, type: "ws" },
    { ...FAR, url: "file:///etc" },
    { ...FAR, url: "https://user:secret@far.example/" },
    { ...FAR, url: "https://far.example/\n" },
    { ...FAR, headers: { "a b": "x" } },
    { ...FAR, headers: { a: "x\r\nb: y" } },
  ]) {
    expect([server, refusalOf([server])]).toEqual([server, expect.stringMatching(/^agent_config\.mcp_servers\.0/)]);
  }
  for (const server of [
    { name: "a", command: "npx", args: ["-y", "x"], env: { A: "" } },
    FAR,
    { ...FAR, type: "sse" },
  ]) {
    expect([server, refusalOf([server])]).toEqual([server, undefined]);
  }
  expect(refusalOf([FAR, FAR])).toBe(`${FIELD}: two servers have the same name`);
  const large = Array.from({ length: 9 }, (_, i) => ({ name: `s${i}`, command: "x", args: ["y".repeat(8_000)] }));
  expect(refusalOf(large)).toBe(`${FIELD}: accepted are 65536 bytes in all`);
});

it("name variables of the sandbox, and no others", () => {
  const server = { ...FAR, headers: { Authorization: "Bearer ${TOKEN}", Price: "$5 ${" } };
  expect(refusalOf([server])).toBe(`${FIELD}.0: there is no variable TOKEN in env_vars`);
  expect(refusalOf([server], { env_vars: { TOKEN: "x" } })).toBeUndefined();
});

it("are shown as they would be asked for", () => {
  const servers = [FAR, { name: "a", command: "x" }];
  const spec = createRequest.parse({ agent_provider: "codex", agent_config: { mcp_servers: servers } });
  const shown = toRequest(spec);
  expect(shown["agent_config"]).toMatchObject({
    mcp_servers: [
      { ...FAR, headers: {} },
      { name: "a", type: "stdio", command: "x", args: [], env: {} },
    ],
  });
  expect(createRequest.parse(shown)).toEqual(spec);
});
