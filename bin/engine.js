#!/usr/bin/env node
// The start of the program. This file keeps to syntax that every Node since 12 reads, so that one which is too old for
// the rest still says so in a sentence instead of a syntax error.
import { spawnSync } from "child_process";
import { createHash } from "crypto";
import { existsSync, readFileSync, statSync } from "fs";
import * as nodeModule from "module";
import { homedir } from "os";
import { join, relative } from "path";
import { fileURLToPath } from "url";

var NEEDED = [22, 19];

function isTooOld(version) {
  var parts = version.split(".").map(Number);
  return parts[0] < NEEDED[0] || (parts[0] === NEEDED[0] && parts[1] < NEEDED[1]);
}

function quote(word) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";
}

// What the user typed, to be typed again under a newer Node.
function typedCommand() {
  if (process.env.npm_lifecycle_event === "start") return "npm start";
  var script = relative(process.cwd(), process.argv[1]);
  if (script.indexOf("..") === 0) script = process.argv[1];
  return ["node", script].concat(process.argv.slice(2)).map(quote).join(" ");
}

function fail(error) {
  process.stderr.write((error && error.stack) || String(error));
  process.stderr.write("\n");
  process.exit(1);
}

if (isTooOld(process.versions.node)) {
  process.stderr.write(
    "error: engine needs Node " +
      NEEDED.join(".") +
      " or newer and this is " +
      process.versions.node +
      "; run: npx -y -p node@22 -c " +
      quote(typedCommand()) +
      "\n",
  );
  process.exit(1);
}

// Whether the bundle was made of the sources that are there: of each file the size and the time of change are compared
// (6 ms in all), and the text only where just the time differs, as in a copy. `npm run build` wrote what they were.
function isCurrent(manifest) {
  if (!existsSync(manifest)) return false;
  try {
    return JSON.parse(readFileSync(manifest, "utf8")).every(isUnchanged);
  } catch (error) {
    // A file is gone, or the manifest is half written.
    return false;
  }
}

function isUnchanged(entry) {
  var file = new URL("../" + entry[0], import.meta.url);
  var stats = statSync(file);
  if (stats.size !== entry[1]) return false;
  return stats.mtimeMs === entry[2] || createHash("sha256").update(readFileSync(file)).digest("hex") === entry[3];
}

// Compiled code is kept between starts, which saves a command a quarter of its time. Node checks it against the sources,
// and goes on without it where the folder cannot be written. NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE count.
function keepCompiledCode() {
  try {
    nodeModule.enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "engine", "code"));
  } catch (error) {
    // A user without a home folder.
  }
}
keepCompiledCode();

// `npm start` in a checkout builds the pages for browsers where their sources are newer (1 s). Without the packages that
// build them, or where the build fails, the server starts with those that are there.
function buildPages() {
  var script = fileURLToPath(new URL("../scripts/web.ts", import.meta.url));
  var builder = fileURLToPath(new URL("../node_modules/vite", import.meta.url));
  if (process.env.npm_lifecycle_event !== "start" || !existsSync(script) || !existsSync(builder)) return;
  if (isCurrent(new URL("../dist/web-manifest.json", import.meta.url))) return;
  spawnSync(process.execPath, [script], { stdio: ["ignore", "inherit", "inherit"] });
}
buildPages();

// What a hook of a coding agent runs answers within 300 ms or not at all: it has a bundle of its own, which starts in less
// than half the time. What it leaves behind (keep-transcript) nobody waits for.
var isHook = process.argv[2] === "plugin-hook" && process.argv[3] !== "keep-transcript";

// An installed package has only the bundles. A checkout runs them while they are current, else its sources.
var source = new URL(isHook ? "../roles/plugin-hook.ts" : "../roles/main.ts", import.meta.url);
var bundle = new URL(isHook ? "../dist/plugin-hook.js" : "../dist/engine.js", import.meta.url);
var manifest = new URL("../dist/manifest.json", import.meta.url);
var runsSources = existsSync(fileURLToPath(source)) && !isCurrent(manifest);
import(runsSources ? source.href : bundle.href).catch(fail);
