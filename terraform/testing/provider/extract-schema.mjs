// Makes schema.json: names and types of the resources that `terraform/` uses, as provider aws 6.25.0 declares them.
//
//     npm pack @cdktf/provider-aws@21.22.1 && tar xzf cdktf-provider-aws-21.22.1.tgz
//     node extract-schema.mjs package/lib ../.. schema.json
//
// The bindings say of each argument its name, its type, whether it is a block, and whether it is required; of each
// attribute that only AWS knows, its name and type.
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";

const [library, modules, output] = process.argv.slice(2);
const PRIMITIVES = { string: "string", number: "number", boolean: "bool" };

const used = { resource: new Set(), data: new Set() };
for (const file of globSync(`${modules}/**/*.tf`)) {
  for (const [, kind, type] of readFileSync(file, "utf8").matchAll(/^(resource|data) "(aws_\w+)"/gm))
    used[kind].add(type);
}
const schema = {
  provider: read("provider"),
  resources: Object.fromEntries(
    [...used.resource].toSorted((a, b) => (a < b ? -1 : 1)).map((type) => [type, read(folderOf(type))]),
  ),
  data: Object.fromEntries(
    [...used.data]
      .toSorted((a, b) => (a < b ? -1 : 1))
      .map((type) => [type, read(`data-${type.replaceAll("_", "-")}`)]),
  ),
};
writeFileSync(output, `${JSON.stringify(schema)}\n`);

function folderOf(type) {
  return type === "aws_lb" ? "lb" : type.replace(/^aws_/, "").replaceAll("_", "-");
}

function read(folder) {
  if (!existsSync(`${library}/${folder}`)) throw new Error(`the bindings have no ${folder}`);
  const js = readFileSync(`${library}/${folder}/index.js`, "utf8");
  const declarations = readFileSync(`${library}/${folder}/index.d.ts`, "utf8");
  const required = new Map();
  for (const [, name, body] of declarations.matchAll(/export interface (\w+)(?: extends [^{]+)? \{([^]*?)\n\}/g)) {
    const names = [...body.matchAll(/readonly (\w+)(\??):/g)].filter(([, , mark]) => mark === "");
    required.set(name, new Set(names.map(([, field]) => field.toLowerCase())));
  }
  const mappers = new Map();
  for (const found of js.matchAll(/^function (\w+)ToHclTerraform\(struct\) \{/gm)) {
    mappers.set(found[1], balanced(js, found.index + found[0].length - 1));
  }
  const classes = new Map(
    [...js.matchAll(/^class (\w+) extends cdktf\./gm)].map(({ 1: name, index }) => [
      name,
      balanced(js, js.indexOf("{", index)),
    ]),
  );
  const main = [...js.matchAll(/^class (\w+) extends cdktf\.Terraform(?:Resource|DataSource|Provider)/gm)][0];
  const body = classes.get(main[1]);
  const block = blockOf(entriesOf(body.slice(body.indexOf("synthesizeHclAttributes()"))), `${main[1]}Config`, body);
  for (const [name, type] of computedOf(body)) block.attrs[name] ??= { type, computed: true };
  return block;

  function blockOf(entries, declared, inClass) {
    const block = { attrs: {}, blocks: {} };
    for (const { name, value, isBlock, type, storage } of entries) {
      const isRequired = required.get(declared)?.has(name.replaceAll("_", "")) === true;
      const mapper = /(\w+?)ToHclTerraform/.exec(value.replace(/cdktf\.(?:list|hash)MapperHcl\(/, ""))?.[1];
      if (isBlock && mapper !== undefined) {
        const struct = mapper[0].toUpperCase() + mapper.slice(1);
        block.blocks[name] = {
          nesting: type === "struct" ? "single" : type,
          min: isRequired ? 1 : 0,
          max: /listMapperHcl/.test(value) || type === "struct" ? 0 : 1,
          block: blockOf(entriesOf(mappers.get(mapper)), struct, classes.get(`${struct}OutputReference`) ?? ""),
        };
        continue;
      }
      const isComputed =
        inClass.includes(`// ${name} - computed: true, optional: true`) || ["id", "region", "tags_all"].includes(name);
      block.attrs[name] = {
        type: typeOf(type, storage),
        ...(isRequired ? { required: true } : { optional: true, ...(isComputed && { computed: true }) }),
      };
      if (name.endsWith("_wo")) block.attrs[name].writeOnly = true;
    }
    return block;
  }

  /** Of a class: what AWS alone says. */
  function* computedOf(text) {
    for (const { 1: name, index } of text.matchAll(
      /\/\/ (\w+) - computed: true, optional: false, required: false\n/g,
    )) {
      const rest = text.slice(index).split("\n").slice(1, 4).join("\n");
      const list = /new (\w+)List\(this, ["'](\w+)["'], (true|false)\)/.exec(rest);
      const [, getter] = /get(String|Number|Boolean|List)Attribute\(/.exec(rest) ?? [];
      if (list?.[2] === name) {
        const fields = Object.fromEntries(computedOf(classes.get(`${list[1]}OutputReference`)));
        yield [name, [list[3] === "true" ? "set" : "list", ["object", fields]]];
      } else if (getter === "List") yield [name, ["list", "string"]];
      else if (getter !== undefined) yield [name, PRIMITIVES[getter.toLowerCase()]];
    }
  }
}

function entriesOf(text) {
  const pattern =
    /^\s+"?([a-z0-9_]+)"?: \{\n\s+value: (.*),\n\s+isBlock: (true|false),\n\s+type: "(\w+)",\n\s+storageClassType: "(\w+)",/gm;
  return [...text.matchAll(pattern)].map(([, name, value, isBlock, type, storage]) => ({
    name,
    value,
    isBlock: isBlock === "true",
    type,
    storage,
  }));
}

function typeOf(type, storage) {
  if (PRIMITIVES[storage] !== undefined) return PRIMITIVES[storage];
  const [, element, collection] = /^(string|number|boolean)(List|Map)$/.exec(storage) ?? [];
  if (collection === "Map") return ["map", PRIMITIVES[element]];
  if (collection === "List") return [type === "set" ? "set" : "list", PRIMITIVES[element]];
  // Types of nested values that the bindings do not tell; text is what Terraform converts nearly everything to.
  return "string";
}

function balanced(text, start) {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === "{") depth++;
    if (text[at] === "}" && --depth === 0) return text.slice(start, at + 1);
  }
  throw new Error("a brace is not closed");
}
