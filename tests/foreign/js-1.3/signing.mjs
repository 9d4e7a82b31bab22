// Signs and verifies cards with the JavaScript SDK.
//
// signing.mjs verify CARD JWKS            prints `ok`, or fails
// signing.mjs sign CARD KEY ID ALGORITHM  prints the signed card

import { readFileSync } from 'node:fs';
import { generateAgentCardSignature, verifyAgentCardSignature } from '@a2a-js/sdk';
import * as jose from 'jose';

const [, , command, cardFile, ...rest] = process.argv;
const read = (path) => readFileSync(path, 'utf8');
// The card as it came: one that the SDK has read before loses its security schemes when it is written for a signature.
const card = JSON.parse(read(cardFile));

if (command === 'verify') {
  const { keys } = JSON.parse(read(rest[0]));
  const find = async (kid) => {
    const key = keys.find((key) => key.kid === kid);
    if (!key) throw new Error(`no key ${kid}`);
    return jose.importJWK(key, key.alg);
  };
  await verifyAgentCardSignature(find)(card);
  console.log('ok');
} else {
  const [keyFile, kid, alg] = rest;
  const key = await jose.importPKCS8(read(keyFile), alg);
  const signed = await generateAgentCardSignature(key, { alg, kid, typ: 'JOSE' })(card);
  console.log(JSON.stringify(signed));
}
