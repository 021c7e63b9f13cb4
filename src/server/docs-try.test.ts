import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { z } from "zod";
import { docsPagePolicy, renderDocsPage } from "./docs-page.ts";
import { renderTryForm } from "./docs-try.ts";
import { TRY_SCRIPT } from "./docs-try-script.ts";
import { plainRoute, type Route } from "./route.ts";

const row = {
  role: "write",
  tag: "x",
  summary: "x",
  errors: [],
  responses: [],
  handle: async () => ({ status: 200, headers: {} }),
} as const;
const HOSTILE = `"><img src=x onerror=alert(1)></textarea></pre><script>alert('1')</script>`;

test("what a route says is text on the page, never markup", () => {
  const route = plainRoute({
    ...row,
    method: "POST",
    path: "/v1/x/{id}",
    summary: HOSTILE,
    tag: HOSTILE,
    params: z.object({ id: z.string().describe(HOSTILE) }),
    query: z.object({ [HOSTILE]: z.string().optional() }),
    body: { types: [HOSTILE, "text/plain"], description: HOSTILE, limitBytes: 1, example: HOSTILE },
  });
  const json = plainRoute({
    ...row,
    method: "PUT",
    path: "/v1/y",
    json: z.object({ [HOSTILE]: z.string().describe(HOSTILE), kind: z.literal(HOSTILE) }),
  });
  const page = renderDocsPage([route, json], { title: HOSTILE, version: HOSTILE });
  expect(page.match(/<script/g)).toHaveLength(1);
  expect(page.match(/<\/textarea>/g)).toHaveLength(2);
  expect(page).not.toContain("<img");
  expect(page).toContain("&lt;img src=x onerror=alert(1)&gt;");
  expect(docsPagePolicy()).toMatch(
    /^default-src 'none'; style-src 'sha256-[^' ]+'; script-src 'sha256-[^' ]+'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
  );
});

test("a form has an input for each parameter, and a body of what is needed", () => {
  const form = renderTryForm(
    plainRoute({
      ...row,
      method: "POST",
      path: "/v1/x/{id}",
      params: z.object({ id: z.string() }),
      query: z.object({ limit: z.string().optional() }),
      headers: z.object({ "x-table": z.string() }),
      json: z.object({
        name: z.string(),
        count: z.int(),
        kind: z.enum(["a", "b"]),
        nested: z.object({ yes: z.boolean(), list: z.array(z.string()) }),
        more: z.string().optional(),
      }),
    }),
  );
  expect(
    [...form.matchAll(/data-in="(\w+)"(?: data-name="([^"]*)")?( required)?/g)].map(([, ...found]) => found),
  ).toEqual([
    ["path", "id", " required"],
    ["query", "limit", undefined],
    ["header", "x-table", " required"],
    ["body", undefined, undefined],
  ]);
  const area = /<textarea[^>]*>\n([^]*)<\/textarea>/.exec(form)?.[1]?.replaceAll("&quot;", '"') ?? "";
  expect(JSON.parse(area)).toEqual({ name: "", count: 0, kind: "a", nested: { yes: false, list: [] } });
  expect(renderTryForm(plainRoute({ ...row, method: "GET", path: "/v1/s", webSocket: true }))).toBe("");
});

type Field = { dataset: { in: string; name?: string }; value: string };
type Sent = { url: string; init: RequestInit & { headers: Record<string, string> } };

/** The page's script with one form, on a page that knows no more of the DOM than that takes. */
function pageWith(
  route: Pick<Route, "method" | "path"> & { type?: string },
  fields: Field[],
  answer: () => Promise<Response>,
) {
  const listeners = new Map<string, (event: { preventDefault: () => void }) => Promise<void>>();
  const shown: string[] = [];
  const token = { value: " secret-token " };
  const sent: Sent[] = [];
  const button = () => ({
    disabled: false,
    hidden: true,
    addEventListener: (_: string, run: () => void) => void (stops = run),
  });
  let stops = () => undefined as void;
  const pre = { hidden: true, textContent: "", append: (text: string) => void shown.push(text) };
  const form = {
    dataset: { method: route.method, path: route.path, type: route.type ?? "" },
    querySelectorAll: (what: string) => (what === "button" ? [button(), button()] : fields),
    querySelector: () => pre,
    addEventListener: (name: string, run: never) => void listeners.set(name, run),
  };
  const pageListeners = new Map<string, () => void>();
  const context = {
    document: { getElementById: () => token, querySelectorAll: () => [form] },
    addEventListener: (name: string, run: () => void) => void pageListeners.set(name, run),
    location: { href: "https://engine.example/docs#x" },
    fetch: (url: URL, init: Sent["init"]) => {
      sent.push({ url: url.href, init });
      return Promise.race([
        answer(),
        new Promise<never>((_, reject) => init.signal?.addEventListener("abort", () => reject(new Error("aborted")))),
      ]);
    },
    URL,
    URLSearchParams,
    TextDecoder,
    AbortController,
  };
  runInNewContext(TRY_SCRIPT, context);
  const send = async () => {
    await listeners.get("submit")?.({ preventDefault: () => undefined });
    return shown.join("");
  };
  return { send, sent, token, stop: () => stops(), leave: () => pageListeners.get("pagehide")?.() };
}

const field = (where: string, name: string, value: string): Field => ({ dataset: { in: where, name }, value });
const ok = async () => Response.json({ a: 1 }, { headers: { "X-Y": "z" } });

test("the script sends what the form says to this server alone, with the token and without cookies", async () => {
  const fields = [
    field("path", "id", "a b/../c?d#e"),
    field("path", "path", "f/é/..x"),
    field("query", "limit", "1&2"),
    field("query", "none", ""),
    field("header", "x-table", "t"),
    field("body", "", '{"b":2}'),
  ];
  const page = pageWith({ method: "POST", path: "/v1/x/{id}/{*path}", type: "application/json" }, fields, ok);
  const shown = await page.send();
  expect(page.sent).toEqual([
    {
      url: "https://engine.example/v1/x/a%20b%2F..%2Fc%3Fd%23e/f/%C3%A9/..x?limit=1%262",
      init: expect.objectContaining({
        method: "POST",
        body: '{"b":2}',
        credentials: "omit",
        redirect: "manual",
        headers: { "x-table": "t", Authorization: "Bearer secret-token", "Content-Type": "application/json" },
      }),
    },
  ]);
  expect(shown).toContain("HTTP 200");
  expect(shown).toContain("x-y: z");
  expect(shown).toContain('{"a":1}');
  page.leave();
  expect(page.token.value).toBe("");
});

test.each(["..", ".", "", "a/../../v1/other", "//evil.example/x", "x/"])(
  "the script keeps a path in its place: %j",
  async (value) => {
    const page = pageWith({ method: "DELETE", path: "/v1/x/{*rest}" }, [field("path", "rest", value)], ok);
    expect(await page.send()).toContain("rest: accepted are names");
    expect(page.sent).toEqual([]);
  },
);

test("the script shows text as it comes, up to a bound, and of other bytes how many they are", async () => {
  const markup = "<script>alert(1)</script>";
  const asText = async () => new Response(markup, { headers: { "Content-Type": "text/plain" } });
  expect(await pageWith({ method: "GET", path: "/a" }, [], asText).send()).toContain(markup);
  const large = async () => new Response("x".repeat(500_000), { headers: { "Content-Type": "text/plain" } });
  const shown = await pageWith({ method: "GET", path: "/a" }, [], large).send();
  expect(shown).toContain("[the rest is not shown]");
  expect(shown.length).toBeLessThan(201_000);
  const binary = async () =>
    new Response(new Uint8Array(7), { headers: { "Content-Type": "application/octet-stream" } });
  expect(await pageWith({ method: "GET", path: "/a" }, [], binary).send()).toContain("[7 bytes that are not text]");
});

test("the script says that nobody answered, and stops when it is told", async () => {
  const away = pageWith({ method: "GET", path: "/a" }, [], () => Promise.reject(new TypeError("Failed to fetch")));
  expect(await away.send()).toContain("TypeError: Failed to fetch");
  const silent = pageWith({ method: "GET", path: "/a" }, [], () => new Promise(() => undefined));
  const sending = silent.send();
  silent.stop();
  expect(await sending).toContain("[stopped]");
  expect(silent.sent).toHaveLength(1);
});
