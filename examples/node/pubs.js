'use strict';
/*
 * A document of XML that lies in the database: searched, changed and written as text: node pubs.js [PATH]
 */
const perilune = require('perilune');
const {dom} = require('perilune/dom');

const db = perilune.open(process.argv[2]);
const doc = dom(db.node('^pubs'));
doc.parse('<town name="Dublin"><pub name="Neary"/><pub name="Grogan"><beer price="6"/></pub></town>', {replace: true});

console.log('pubs', doc.evaluate('count(//pub)'), doc.xpath('//pub[beer]')[0].getAttribute('name'));

/* A change is one transaction; several are one if they are put into one. */
db.transaction(() => {
  for (const beer of doc.xpath('//beer')) beer.setAttribute('price', String(Number(beer.getAttribute('price')) + 1));
  doc.first('//pub[@name="Neary"]').appendElement({tagName: 'beer', attributes: {price: '5'}, text: 'stout'});
});
console.log(doc.output());
const cheap = doc.xpath('//beer[@price < 6]/..').map((pub) => pub.getAttribute('name'));
console.log('cheap', cheap.join(', '), 'sum', doc.evaluate('sum(//@price)'));

doc.removeDocument();
db.close();
