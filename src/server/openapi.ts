import type { z } from "zod";

import { ERROR_CODES, type ErrorCode } from "../core/errors.ts";
import { codeFor } from "./error-response.ts";
import { errorBody } from "./schemas.ts";
import { OpenApiSchemas } from "./openapi-schemas.ts";
import type { Role, Route, RouteFailures } from "./route.ts";

/** OpenAPI 3.1 from the route table: nothing in it is written twice, so nothing can drift. */
export type OpenApiInfo = { title: string; version: string };

type Json = Record<string, unknown>;

/** Errors that any route may answer with, from the layers around the handlers. */
const COMMON_ERRORS: readonly ErrorCode[] = ["bad_request", "internal"];
/** Errors that a route with a JSON body may answer with besides. */
const JSON_ERRORS: readonly ErrorCode[] = [
  "bad_request_body",
  "body_too_large",
  "unsupported_media_type",
  "request_timeout",
];
/** Errors that a route may answer a page in a browser with: see `origin-guard.ts`. */
const ORIGIN_ERRORS: readonly ErrorCode[] = ["forbidden"];
/** Errors that a route with a role may answer with besides. */
const ACCESS_ERRORS: readonly ErrorCode[] = ["unauthorized", "forbidden", "too_many_requests", "unavailable"];

export function openApiOf(routes: readonly Route[], info: OpenApiInfo): Json {
  const schemas = new OpenApiSchemas();
  schemas.of(errorBody);
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    // OpenAPI has no parameter that takes the rest of a path.
    const path = route.path.replace("{*", "{");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas) };
  }
  return {
    openapi: "3.1.0",
    info: { ...info, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
    servers: [{ url: "/", description: "This server, by the name under which it gave this document." }],
    paths,
    components: {
      schemas: schemas.all,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        worker: { type: "http", scheme: "bearer", description: "The token of a worker, see `POST /v1/workers`." },
      },
    },
  };
}

function operationOf(route: Route, schemas: OpenApiSchemas): Json {
  return {
    operationId: operationIdOf(route),
    tags: [route.tag],
    summary: route.summary,
    description: [route.description ?? "", ACCESS[route.role]].filter((part) => part !== "").join(" "),
    "x-role": route.role,
    security: securityOf(route),
    parameters: [
      ...parametersOf("path", route.params, schemas),
      ...parametersOf("query", route.query, schemas),
      ...parametersOf("header", route.headers, schemas),
    ],
    ...(route.body === undefined
      ? {}
      : { requestBody: requestBodyOf(route.body, schemas, `${typeNameOf(route)}Request`) }),
    ...(route.json === undefined
      ? {}
      : { requestBody: jsonBodyOf(route.json, schemas, `${typeNameOf(route)}Request`) }),
    responses: responsesOf(route, schemas),
  };
}

const ACCESS: Readonly<Record<Role, string>> = {
  none: "",
  read: "Needs role `read`.",
  write: "Needs role `write`.",
  admin: "Needs role `admin`.",
  worker: "Needs the token of a worker.",
};

function securityOf({ role }: Route): Json[] {
  if (role === "none") return [];
  // While authentication is off no token is needed, but for a worker's.
  return role === "worker" ? [{ worker: [] }] : [{ bearer: [] }, {}];
}

/** `POST /v1/ingest` → `post_v1_ingest`. */
function operationIdOf(route: Route): string {
  return `${route.method.toLowerCase()}${route.path.replace(/[^a-z0-9]+/gi, "_").replace(/_$/, "")}`;
}

/** `POST /v1/ingest` → `PostV1Ingest`. */
function typeNameOf(route: Route): string {
  return operationIdOf(route).replaceAll(/(?:^|_)([a-z0-9])/gi, (_, first: string) => first.toUpperCase());
}

function parametersOf(
  place: "path" | "query" | "header",
  schema: z.ZodObject | undefined,
  schemas: OpenApiSchemas,
): Json[] {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const { description, ...rest } = schemas.of(field as z.ZodType);
    const required = place === "path" || !(field as z.ZodType).safeParse(undefined).success;
    const spelled = place === "header" ? name.replace(/(^|-)[a-z]/g, (part) => part.toUpperCase()) : name;
    return description === undefined
      ? { name: spelled, in: place, required, schema: rest }
      : { name: spelled, in: place, required, description, schema: rest };
  });
}

function requestBodyOf(body: NonNullable<Route["body"]>, schemas: OpenApiSchemas, name: string): Json {
  const { jsonSchema } = body;
  const json = jsonSchema === undefined ? undefined : { schema: schemas.of(jsonSchema, name) };
  const media = { schema: { type: "string" }, ...(body.example === undefined ? {} : { example: body.example }) };
  return {
    required: true,
    description: body.description,
    content: Object.fromEntries(
      body.types.map((type) => [type, type === "application/json" ? (json ?? media) : media]),
    ),
  };
}

function jsonBodyOf(schema: z.ZodType, schemas: OpenApiSchemas, name: string): Json {
  const required = !schema.safeParse(undefined).success;
  return { required, content: { "application/json": { schema: schemas.of(schema, name) } } };
}

/** By status; answers that share one differ in their media type. */
function successesOf(route: Route, schemas: OpenApiSchemas): Json {
  const { responses } = route;
  const entries = responses.map(({ status, headers }) => {
    const same = responses.filter((one) => one.status === status);
    const description = same.map((one) => one.description).join(" Or: ");
    const name = `${typeNameOf(route)}Response${status === responses[0]?.status ? "" : status}`;
    const typed = same.flatMap(({ type, schema }): [string, Json][] => {
      return type === undefined ? [] : [[type, schema === undefined ? {} : { schema: schemas.of(schema, name) }]];
    });
    const content = typed.length === 0 ? {} : { content: Object.fromEntries(typed) };
    const documented = Object.entries(headers ?? {}).map(([name, doc]) => [
      name,
      { description: doc, schema: { type: "string" } },
    ]);
    return [String(status), { description, ...content, headers: Object.fromEntries(documented) as Json }];
  });
  return Object.fromEntries(entries) as Json;
}

/** Error responses, grouped by status. */
function errorsOf(route: Route, schemas: OpenApiSchemas): Json {
  const { failures } = route;
  const usual = { "application/json": { schema: { $ref: "#/components/schemas/Error" } } };
  const content = failures === undefined ? usual : contentOfFailures(failures, schemas);
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set([...route.errors, ...COMMON_ERRORS, ...errorsAround(route)])) {
    const status = failures?.statusOf(code) ?? ERROR_CODES[code].status;
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const entries = [...byStatus].map(([status, codes]) => [
    String(status),
    {
      description: codes.map((code) => `\`${code}\`: ${ERROR_CODES[code].doc}`).join(" "),
      content,
    },
  ]);
  return Object.fromEntries(entries) as Json;
}

function contentOfFailures({ types, schema }: RouteFailures, schemas: OpenApiSchemas): Json {
  const json = { schema: schemas.of(schema, "Failure") };
  return Object.fromEntries(types.map((type) => [type, type === "application/json" ? json : {}]));
}

/** By status; one that is an answer of the route's own and an error besides differs in the media type. */
function responsesOf(route: Route, schemas: OpenApiSchemas): Json {
  const errors = errorsOf(route, schemas);
  const own = Object.entries(successesOf(route, schemas)).map(([status, response]) => {
    const error = errors[status];
    return [status, error === undefined ? response : bothOf(response as Answer, error as Answer)];
  });
  return { ...errors, ...(Object.fromEntries(own) as Json) };
}

type Answer = { description: string; content?: Json };

function bothOf(own: Answer, error: Answer): Json {
  const description = `${own.description} Or: ${error.description}`;
  return { ...own, description, content: { ...error.content, ...own.content } };
}

function errorsAround({ path, role, anyOrigin, json, jsonErrors, webSocket }: Route): readonly ErrorCode[] {
  const ofPlace = ACCESS_ERRORS.map((code) => codeFor(path, code));
  const access = role === "none" ? ORIGIN_ERRORS : ofPlace;
  return [
    ...(anyOrigin === true ? [] : access),
    ...(json === undefined
      ? []
      : JSON_ERRORS.filter((code) => jsonErrors === undefined || code !== "bad_request_body")),
    ...(jsonErrors === undefined ? [] : Object.values(jsonErrors)),
    ...(webSocket === true ? (["upgrade_required"] as const) : []),
  ];
}
