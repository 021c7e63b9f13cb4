import { checkDefaults, checkSamples } from "../config/option-samples.test-kit.ts";
import { CREDENTIALS_OPTIONS } from "./options.ts";

const GITHUB = { client_id: "an-app", client_secret: "hunter2", scopes: ["repo", "gist"] };
const OWN = {
  client_id: "a",
  client_secret: "s",
  title: "Our Git",
  authorize_url: "https://git.example/authorize",
  token_url: "http://127.0.0.1:8080/token",
  device_authorization_url: "https://git.example/device",
  parameters: { audience: "git" },
  client_authentication: "basic",
  pkce: false,
};
const ISSUED = { client_id: "a", client_secret: "hunter2", issuer: "https://id.example/realms/x" };

checkSamples(CREDENTIALS_OPTIONS, {
  secretKey: { one: ["a+b/c=", "a+b/c="], two: ["development", "development"], bad: ["a b", "a,b"], badToml: ["1"] },
  secretKeysFormer: {
    one: ["a", ["a"], '["a"]'],
    two: ["a, b", ["a", "b"]],
    bad: ["a,,b", "a b"],
    badToml: ["1", "[1]"],
  },
  oauthRedirectBase: {
    one: ["https://engine.example/", "https://engine.example"],
    two: ["http://[::1]:7777", "http://[::1]:7777"],
    bad: [
      "engine.example",
      "https://engine.example/path",
      "https://u:hunter2@a.example",
      "https://a.example?",
      "ftp://a",
    ],
    badToml: ["1"],
  },
  oauthUiReturnBase: {
    one: ["https://ui.example/app/", "https://ui.example/app"],
    two: ["http://localhost:5173", "http://localhost:5173"],
    bad: ["ui.example", "https://ui.example#x", "javascript:alert(1)", "http://u:hunter2@h"],
    badToml: ["1"],
  },
  oauthGoogleClientId: { one: ["a.b-1", "a.b-1"], two: ["2", "2"], bad: ["a b"], badToml: ["1"] },
  oauthGoogleClientSecret: { one: ["s-1", "s-1"], two: ["x_y", "x_y"], bad: ["a b"], badToml: ["1"] },
  oauthNotionClientId: { one: ["a.b-1", "a.b-1"], two: ["2", "2"], bad: ["a b"], badToml: ["1"] },
  oauthNotionClientSecret: { one: ["s-1", "s-1"], two: ["x_y", "x_y"], bad: ["a b"], badToml: ["1"] },
  oauthAtlassianClientId: { one: ["a.b-1", "a.b-1"], two: ["2", "2"], bad: ["a b"], badToml: ["1"] },
  oauthAtlassianClientSecret: { one: ["s-1", "s-1"], two: ["x_y", "x_y"], bad: ["a b"], badToml: ["1"] },
  oauthSlackClientId: { one: ["a.b-1", "a.b-1"], two: ["2", "2"], bad: ["a b"], badToml: ["1"] },
  oauthSlackClientSecret: { one: ["s-1", "s-1"], two: ["x_y", "x_y"], bad: ["a b"], badToml: ["1"] },
  oauthProviders: {
    one: [
      JSON.stringify({ github: GITHUB }),
      { github: GITHUB },
      '{ github = { client_id = "an-app", client_secret = "hunter2", scopes = ["repo", "gist"] } }',
    ],
    two: [JSON.stringify({ "our-git": OWN, id: ISSUED }), { "our-git": OWN, id: ISSUED }],
    bad: [
      "hunter2",
      '{"github": {"client_id": "a"}}',
      '{"github": {"client_id": "a", "client_secret": "hunter2", "client_scret": "x"}}',
      '{"ours": {"client_id": "a", "client_secret": "hunter2"}}',
      '{"ours": {"client_id": "a", "client_secret": "hunter2", "token_url": "https://a.example/t"}}',
      '{"ours": {"client_id": "a", "client_secret": "hunter2", "issuer": "http://a.example"}}',
      '{"ours": {"client_id": "a", "client_secret": "hunter2", "issuer": "https://u:hunter2@a.example"}}',
      '{"Our Git": {"client_id": "a", "client_secret": "hunter2", "issuer": "https://a.example"}}',
      '{"constructor": {"client_id": "a", "client_secret": "hunter2"}}',
    ],
    badToml: ["7", "[]", "{ github = 1 }", '{ github = { client_id = "a" } }'],
  },
  oauthRedirectUris: {
    one: [
      "https://ui.example/done?x=1, http://localhost:5173/cb",
      ["https://ui.example/done?x=1", "http://localhost:5173/cb"],
      '["https://ui.example/done?x=1", "http://localhost:5173/cb"]',
    ],
    two: ["https://ui.example", ["https://ui.example"]],
    bad: [
      "ui.example",
      "http://ui.example",
      "https://ui.example#x",
      "https://u:hunter2@a.example",
      "javascript:alert(1)",
    ],
    badToml: ["7", "[7]", "[]"],
  },
});

checkDefaults(CREDENTIALS_OPTIONS, {
  secretKey: undefined,
  secretKeysFormer: [],
  oauthRedirectBase: "http://localhost:8080",
  oauthUiReturnBase: undefined,
  oauthGoogleClientId: undefined,
  oauthGoogleClientSecret: undefined,
  oauthNotionClientId: undefined,
  oauthNotionClientSecret: undefined,
  oauthAtlassianClientId: undefined,
  oauthAtlassianClientSecret: undefined,
  oauthSlackClientId: undefined,
  oauthSlackClientSecret: undefined,
  oauthProviders: {},
  oauthRedirectUris: undefined,
});
