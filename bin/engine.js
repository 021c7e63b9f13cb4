#!/usr/bin/env node
// The start of the program. This file keeps to syntax that every Node since 12 reads, so that one which is too old for
// the rest still says so in a sentence instead of a syntax error.
import { existsSync } from "fs";
import { relative } from "path";
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

// A checkout runs its sources; an installed package has only the bundle.
var source = new URL("../roles/main.ts", import.meta.url);
var bundle = new URL("../dist/engine.js", import.meta.url);
import(existsSync(fileURLToPath(source)) ? source.href : bundle.href).catch(fail);
