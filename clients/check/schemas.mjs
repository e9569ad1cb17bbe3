// Checks docs/protocol with what JavaScript has for it, and the JSON Schemas against the decoder: node schemas.mjs CORPUS
// CORPUS is what TestCorpus of the package wire writes.

import { createInterface } from "node:readline";
import { createReadStream, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { DiagnosticSeverity, Parser } from "@asyncapi/parser";
import { Ajv2020 } from "ajv/dist/2020.js";

const folder = fileURLToPath(new URL("../../docs/protocol/", import.meta.url));
const read = (name) => readFileSync(folder + name, "utf8");
let faults = 0;
function fault(text) {
  console.error(text);
  faults++;
}

// Strict but for two: a field may be a number or a string, and "required" stands apart from "properties" where forms exclude each other.
const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true });
const validators = {};
for (const name of ["query", "answer"]) {
  try {
    validators[name] = ajv.compile(JSON.parse(read(`${name}.schema.json`)));
  } catch (e) {
    fault(`${name}.schema.json: ajv: ${e.message}`);
  }
}

// The latest version of AsyncAPI is a hint, which is no fault.
const { document, diagnostics } = await new Parser().parse(read("asyncapi.json"), { source: folder + "asyncapi.json" });
for (const d of diagnostics.filter((d) => d.severity <= DiagnosticSeverity.Warning)) fault(`asyncapi.json: ${d.path.join(".")}: ${d.message} (${d.code})`);
if (!document?.operations().length) fault("asyncapi.json has no operations");

const judged = { true: 0, false: 0 };
for await (const line of faults ? [] : createInterface({ input: createReadStream(process.argv[2]) })) {
  const { schema, accepted, beyond, body } = JSON.parse(line);
  const says = validators[schema](JSON.parse(body));
  judged[says]++;
  if (says !== accepted && !beyond) fault(`ajv ${says ? "accepts" : "refuses"} what geniemq ${accepted ? "accepts" : "refuses"}: ${body.slice(0, 1000)} ${ajv.errorsText(validators[schema].errors)}`);
}
if (!faults && !(judged.true && judged.false)) fault("nothing was judged, or all the same");
console.log(`JavaScript: ${judged.true} documents accepted and ${judged.false} refused as by geniemq, ${faults} faults`);
process.exit(faults ? 1 : 0);
