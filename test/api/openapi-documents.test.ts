import { expect, test } from "vitest";
import { z } from "zod";
import { openApiOf } from "../../src/server/openapi.ts";
import { OpenApiSchemas } from "../../src/server/openapi-schemas.ts";
import { plainRoute, routesOf, type Route } from "../../src/server/route.ts";
import { SANDBOX_ROUTES } from "../../src/sandbox/control/routes/sandbox-routes.ts";
import { nameSchemas } from "../../src/server/schema-names.ts";

type Json = Record<string, unknown>;
const INFO = { title: "t", version: "1" };
const nothing = async () => ({ status: 200, headers: {} });

function documentOf(routes: readonly Route[]) {
  return openApiOf(routes, INFO) as {
    servers: unknown;
    paths: Record<string, Record<string, Json>>;
    components: { schemas: Record<string, Json> };
  };
}

/** Every place in a document where a schema is referred to. */
function refsIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === "$ref" ? [String(inner)] : refsIn(inner)));
}

test("bodies are named schemas, written once, and every reference leads to one", () => {
  const document = documentOf(routesOf(SANDBOX_ROUTES, { forward: nothing }));
  expect(document.servers).toEqual([{ url: "/", description: expect.any(String) }]);
  const { schemas } = document.components;
  expect(Object.keys(schemas)).toEqual(
    expect.arrayContaining(["Error", "Image", "Message", "Sandbox", "SandboxCreate", "Session", "Workspace"]),
  );
  const refs = new Set(refsIn(document));
  expect(refs.size).toBeGreaterThan(20);
  for (const ref of refs) expect(schemas).toHaveProperty([ref.replace("#/components/schemas/", "")]);
  for (const name of Object.keys(schemas)) expect(refs).toContain(`#/components/schemas/${name}`);
  type Content = { content?: Record<string, { schema?: Json }> };
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  const bodies = operations.map(({ requestBody }) => (requestBody ?? {}) as Content);
  const answers = operations.flatMap(({ responses }) => Object.values(responses as Record<string, Content>));
  const inline = [...bodies, ...answers].flatMap(({ content = {} }) =>
    Object.values(content).filter(({ schema }) => schema?.["properties"] !== undefined),
  );
  expect(bodies.length).toBeGreaterThan(40);
  expect(inline).toEqual([]);
  expect(document.paths["/api/v1/sandboxes"]).toMatchObject({
    post: {
      requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/SandboxCreate" } } } },
      responses: {
        202: { content: { "application/json": { schema: { $ref: "#/components/schemas/CreatedSandbox" } } } },
      },
    },
    get: {
      responses: {
        200: {
          content: {
            "application/json": { schema: { type: "array", items: { $ref: "#/components/schemas/Sandbox" } } },
          },
          headers: { Link: {} },
        },
      },
    },
  });
});

test("what has no name is named after its route, and one schema has one name", () => {
  const shared = z.object({ a: z.string() });
  const row = { role: "none", tag: "x", summary: "x", errors: [], handle: nothing } as const;
  const answer = { status: 200, description: "x", type: "application/json", schema: shared };
  const routes = [
    plainRoute({
      ...row,
      method: "POST",
      path: "/v1/things/{id}",
      json: z.object({ b: z.int() }),
      responses: [answer],
    }),
    plainRoute({ ...row, method: "GET", path: "/v1/things/{id}", responses: [answer, { ...answer, status: 202 }] }),
  ];
  const { components, paths } = documentOf(routes);
  expect(Object.keys(components.schemas)).toEqual(["Error", "PostV1ThingsIdRequest", "PostV1ThingsIdResponse"]);
  expect(
    refsIn(paths["/v1/things/{id}"]?.["get"]).filter((ref) => ref.endsWith("PostV1ThingsIdResponse")),
  ).toHaveLength(2);
});

test("two schemas of one name stop the start, and one that refers to itself does not", () => {
  const schemas = new OpenApiSchemas();
  schemas.of(z.object({ a: z.string() }), "Thing");
  expect(() => schemas.of(z.object({ b: z.string() }), "Thing")).toThrow("two schemas are called Thing");
  type Tree = { children: Tree[] };
  const tree: z.ZodType<Tree> = z.lazy(() => z.object({ children: z.array(tree) }));
  const named = z.object({ tree });
  nameSchemas({ TestForest: named });
  expect(schemas.of(named)).toEqual({ $ref: "#/components/schemas/TestForest" });
  for (const ref of refsIn(schemas.all)) expect(schemas.all).toHaveProperty([ref.replace("#/components/schemas/", "")]);
});

test("errors have the code of their API", () => {
  const row = {
    method: "GET",
    role: "read",
    tag: "x",
    summary: "x",
    errors: [],
    handle: nothing,
    responses: [],
  } as const;
  const { paths } = documentOf([plainRoute({ ...row, path: "/v1/a" }), plainRoute({ ...row, path: "/api/v1/a" })]);
  const codeOf = (path: string) => {
    const responses = paths[path]?.["get"]?.["responses"] as Record<string, { description: string }> | undefined;
    return /^`(\w+)`/.exec(responses?.["429"]?.description ?? "")?.[1];
  };
  expect([codeOf("/v1/a"), codeOf("/api/v1/a")]).toEqual(["too_many_requests", "rate_limited"]);
});
