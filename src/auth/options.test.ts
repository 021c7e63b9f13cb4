import { integer } from "../config/load-samples.test-kit.ts";
import { checkDefaults, checkSamples } from "../config/option-samples.test-kit.ts";
import { AUTH_OPTIONS } from "./options.ts";

checkSamples(AUTH_OPTIONS, {
  authBackend: { one: ["session", "session"], two: ["OIDC", "oidc"], bad: ["none"], badToml: ["1"] },
  adminUser: {
    one: ["ann", "ann"],
    two: ["o'b+1@x.example", "o'b+1@x.example"],
    bad: ["a b", "@x"],
    badToml: ["1"],
  },
  adminPassword: { one: ["correct horse", "correct horse"], two: ["é", "é"], bad: ["x".repeat(1025)], badToml: ["1"] },
  localUser: { one: ["ann", "ann"], two: ["bob", "bob"], bad: ["a b"], badToml: ["1"] },
  localPassword: { one: ["hunter2", "hunter2"], two: ["é", "é"], bad: ["x".repeat(1025)], badToml: ["1"] },
  accessTtlSecs: integer(60, 3_600, 1, 31_536_000),
  refreshTtlSecs: integer(60, 3_600, 1, 31_536_000),
  internalBearer: { one: ["t-1", "t-1"], two: ["a:b", "a:b"], bad: ["a b"], badToml: ["1"] },
  authTokens: {
    one: ["s3cret:read", [{ token: "s3cret", role: "read" }], '["s3cret:read"]'],
    two: [
      "a:b:WRITE, c:admin, d:read:ci, e:read:f:write",
      [
        { token: "a:b", role: "write" },
        { token: "c", role: "admin" },
        { token: "d", role: "read", name: "ci" },
        { token: "e:read:f", role: "write" },
      ],
    ],
    bad: ["s3cret", "s3cret:root", ":read", "a b:read", "a:read,,b:read", "a:read:b c", "a:read:-", "a:root:ci"],
    badToml: ["1", "[1]"],
  },
  securityApiKeys: {
    one: ["ci:admin:s3cret", [{ name: "ci", role: "admin", token: "s3cret" }], '["ci:admin:s3cret"]'],
    two: [
      "s3cret, ann:READ:a:b",
      [
        { token: "s3cret", role: "write" },
        { name: "ann", role: "read", token: "a:b" },
      ],
    ],
    bad: ["ci:s3cret", "ci:boss:s3cret", "a b", ":admin:x", "ci:admin:"],
    badToml: ["7", '["a,b"]'],
  },
  idpUrl: {
    one: ["https://p.example.com/", "https://p.example.com"],
    two: ["http://127.0.0.1:54321", "http://127.0.0.1:54321"],
    bad: ["p.example.com", "http://p.example.com", "https://u:hunter2@p.example.com", "https://p.example.com?a=1"],
    badToml: ["1"],
  },
  idpAnonKey: { one: ["eyJ.a.b", "eyJ.a.b"], two: ["k", "k"], bad: ["a b"], badToml: ["1"] },
  idpJwtSecret: {
    one: ["hunter2-".repeat(4), "hunter2-".repeat(4)],
    two: ["é".repeat(16), "é".repeat(16)],
    bad: ["hunter2", "x".repeat(1_025)],
    badToml: ["1"],
  },
  idpJwtAud: { one: ["engine", "engine"], two: ["a:b", "a:b"], bad: ["a b", "x".repeat(256)], badToml: ["1"] },
  idpProviders: {
    one: ["google, github", ["google", "github"], '["google", "github"]'],
    two: ["custom:a", ["custom:a"]],
    bad: ["google,,github", "a b"],
    badToml: ["1", "[1]", "[]"],
  },
  adminEmails: {
    one: ["Ann@X.example", ["ann@x.example"], '["ann@x.example"]'],
    two: ["a@x.example,b+c@y.example", ["a@x.example", "b+c@y.example"]],
    bad: ["ann", "a@b@c", "a@x.example,", "@x.example"],
    badToml: ["1", "[]"],
  },
  allowedEmailDomains: {
    one: ["X.example, y.example", ["x.example", "y.example"], '["x.example", "y.example"]'],
    two: ["x.example", ["x.example"]],
    bad: ["@x.example", "*.x.example", ","],
    badToml: ["1", "[]"],
  },
  idpDefaultRole: { one: ["write", "write"], two: ["ADMIN", "admin"], bad: ["root"], badToml: ["1"] },
  oidcIssuers: {
    one: [
      "https://a.example/realms/x, https://b.example/",
      ["https://a.example/realms/x", "https://b.example/"],
      '["https://a.example/realms/x", "https://b.example/"]',
    ],
    two: ["http://localhost:8000,http://[::1]:1", ["http://localhost:8000", "http://[::1]:1"]],
    bad: ["a.example", "http://a.example", "https://u:hunter2@a.example", "https://a.example#x", "https://a.example,"],
    badToml: ["1", "[]", '["nonsense"]'],
  },
  oidcAudience: { one: ["api", "api"], two: ["https://api/", "https://api/"], bad: ["a b"], badToml: ["1"] },
  oidcRoleClaim: { one: ["roles", "roles"], two: ["https://x/role", "https://x/role"], bad: ["a b"], badToml: ["1"] },
  oidcSubjectClaim: { one: ["email", "email"], two: ["client_id", "client_id"], bad: ["a b"], badToml: ["1"] },
  oidcDatabasesClaim: { one: ["dbs", "dbs"], two: ["tenant", "tenant"], bad: ["a b"], badToml: ["1"] },
});

checkDefaults(AUTH_OPTIONS, {
  authBackend: "env",
  adminUser: undefined,
  adminPassword: undefined,
  localUser: "admin",
  localPassword: "admin",
  accessTtlSecs: 3_600,
  refreshTtlSecs: 2_592_000,
  internalBearer: undefined,
  authTokens: [],
  securityApiKeys: [],
  idpUrl: undefined,
  idpAnonKey: undefined,
  idpJwtSecret: undefined,
  idpJwtAud: "authenticated",
  idpProviders: [],
  adminEmails: [],
  allowedEmailDomains: undefined,
  idpDefaultRole: "read",
  oidcIssuers: [],
  oidcAudience: "engine",
  oidcRoleClaim: "engine_role",
  oidcSubjectClaim: "sub",
  oidcDatabasesClaim: "engine_databases",
});
