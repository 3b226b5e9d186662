player ; A player in M: serves the lines of bench/src/player/mod.rs with GT.M or YottaDB.
 ; $ztrnlnm("PLAYER_DURABLE")=1: each operation that writes is a transaction, which waits for the journal.
 new line,durable,answer,ops,arg,exp,sub,cnt
 set durable=$ztrnlnm("PLAYER_DURABLE")=1
 use $principal:(width=32767:nowrap)
 write "ready",!
 for  read line quit:$zeof  do serve(line)
 quit
 ;
serve(line) ; one line, one answer
 new $etrap,word,a,b,c,answer
 set $etrap="use $principal write ""error "",$translate($zstatus,$char(10)),! halt"
 set word=$piece(line," "),a=$piece(line," ",2),b=$piece(line," ",3),c=$piece(line," ",4),answer=""
 do @("do"_word)
 use $principal
 write "ok ",answer,!
 quit
 ;
doset new n,value set value="Chris Munt"
 if durable for n=a:1:a+b-1 tstart ():serial  set ^cm(n)=value tcommit
 if 'durable for n=a:1:a+b-1 set ^cm(n)=value
 set answer=b quit
 ;
doget new n,value set value="Chris Munt",answer=0
 for n=a:1:a+b-1 if $get(^cm(n))=value!($extract($get(^cm(n)),1,8)="Chris Mu") set answer=answer+1
 quit
 ;
dorset new i,seed,value set seed=b#2147483646+1
 for i=0:1:99 set value(i)="Chris Mu"_$extract(100+i,2,3)
 for i=b:1:b+a-1 do
 . set seed=seed*16807#2147483647
 . if durable tstart ():serial  set ^cm(seed#c+1)=value(i#100) tcommit  quit
 . set ^cm(seed#c+1)=value(i#100)
 set answer=a quit
 ;
dorget new i,seed,value set value="Chris Munt",seed=b#2147483646+1,answer=0
 for i=1:1:a set seed=seed*16807#2147483647 if $get(^cm(seed#c+1))=value!($extract($get(^cm(seed#c+1)),1,8)="Chris Mu") set answer=answer+1
 quit
 ;
dobset new n,first set answer=b
 for first=a:c:a+b-1 do
 . tstart ():serial
 . for n=first:1:$select(first+c<(a+b):first+c,1:a+b)-1 set ^cm(n)="Chris Munt"
 . tcommit
 quit
 ;
doaccounts new n for n=1:1:a set ^bank(n)=1000
 set answer=a quit
 ;
dobank new n set answer=0 for n=1:1:a set answer=answer+^bank(n)
 quit
 ;
dotransfer new i,seed,from,to set seed=b#2147483646+1
 for i=1:1:a do
 . set seed=seed*16807#2147483647,from=seed#c+1
 . set seed=seed*16807#2147483647,to=(from-1+(seed#(c-1)+1))#c+1
 . tstart ():serial
 . set ^bank(from)=^bank(from)-1,^bank(to)=^bank(to)+1
 . tcommit
 set answer=a quit
 ;
docollatz new reads,updates,block,index,start,last
 set (reads,updates)=0,block=$select(a<100:1,1:a\100)
 for index=0:1:a-1\block if $increment(^taken(index+1))=1 do
 . set last=index*block+block set:last>a last=a
 . for start=index*block+1:1:last do sequence(start)
 set answer=reads_" "_updates quit
 ;
sequence(n) new highest,steps,path,known,i,total,new
 set highest=0,steps=0
 for  set reads=reads+1,known=$data(^step(n)) quit:known!(n=1)  do
 . set steps=steps+1,path(steps)=n
 . set n=$select(n#2:3*n+1,1:n\2)
 . set:n>highest highest=n
 quit:'steps
 set total=steps
 if n>1 set reads=reads+1,total=total+^step(n)
 tstart ():serial
 set new=0
 if total>$get(^record(1)) set ^record(1)=total,new=new+1
 if highest>$get(^record(2)) set ^record(2)=highest,new=new+1
 tcommit
 set reads=reads+2,updates=updates+new+steps
 if durable for i=1:1:steps tstart ():serial  set ^step(path(i))=total-i+1 tcommit
 if 'durable for i=1:1:steps set ^step(path(i))=total-i+1
 quit
 ;
doresult set answer=$get(^record(1),0)_" "_$get(^record(2),0) quit
 ;
dosteps new n set answer=0 for n=1:b:a set answer=answer+$get(^step(n))
 quit
 ;
doload ; a phase of a trace: name and subscripts become a reference, as a program has it
 new file,line,n,i
 kill ops,arg,exp,sub,cnt
 set file=a,answer=0
 open file:(readonly:stream:nowrap:recordsize=1048576):10 use file
 for  read line quit:$zeof  do:$extract(line)'="#"
 . if b'="-",$piece(line,$char(9))'=b quit
 . set answer=answer+1,ops(answer)=$piece(line,$char(9),2)
 . set n=$piece(line,$char(9),4),cnt(answer)=n
 . for i=1:1:n set sub(answer,i)=$$unescaped($piece(line,$char(9),4+i))
 . set arg(answer)=$$unescaped($piece(line,$char(9),5+n))
 . set exp(answer)=$$unescaped($piece(line,$char(9),6+n))
 . set ops(answer,1)=$piece(line,$char(9),3)
 . set ops(answer,0)=$$reference($piece(line,$char(9),3),n)
 close file
 quit
 ;
reference(name,n) ; the text of the node, for the indirection that M has for such
 new i,text,one
 if n=0 quit "^"_name
 set text="^"_name_"("
 for i=1:1:n set one=sub(answer,i),text=text_$select(one=+one:one,1:$zwrite(one))_$select(i<n:",",1:")")
 quit text
 ;
unescaped(text) quit:text'["\" text
 new out,i,letter set out=""
 for i=1:1:$zlength(text) do
 . set letter=$zextract(text,i)
 . if letter="\" set i=i+1,letter=$zextract(text,i),letter=$select(letter="t":$char(9),letter="n":$char(10),letter="r":$char(13),1:"\")
 . set out=out_letter
 quit out
 ;
doreplay new i,wrong,last,r,v,target,op
 set wrong=0,last=a+b set:last>$order(ops(""),-1) last=$order(ops(""),-1)
 ; What the XML trace has is written out, as a program of its own would have it; other traces go by name.
 for i=a+1:1:last do
 . set op=ops(i)
 . if op="get" do right($$get(i)) quit
 . if op="data" do right($$data(i)) quit
 . if op="set" tstart:durable ():serial  do put(i) tcommit:durable  quit
 . if op="next" do right($$order(i)) quit
 . if op="increment" do right($increment(@ops(i,0),arg(i))) quit
 . do @op
 set answer=wrong quit
 ;
get(i) new n set n=cnt(i)
 if ops(i,1)'="exampleDom" quit $get(@ops(i,0))
 quit $select(n=3:$get(^exampleDom(sub(i,1),sub(i,2),sub(i,3))),n=1:$get(^exampleDom(sub(i,1))),n=4:$get(^exampleDom(sub(i,1),sub(i,2),sub(i,3),sub(i,4))),n=5:$get(^exampleDom(sub(i,1),sub(i,2),sub(i,3),sub(i,4),sub(i,5))),1:$get(@ops(i,0)))
 ;
data(i) new n set n=cnt(i)
 if ops(i,1)'="exampleDom" quit $data(@ops(i,0))
 quit $select(n=3:$data(^exampleDom(sub(i,1),sub(i,2),sub(i,3))),n=1:$data(^exampleDom(sub(i,1))),n=4:$data(^exampleDom(sub(i,1),sub(i,2),sub(i,3),sub(i,4))),n=5:$data(^exampleDom(sub(i,1),sub(i,2),sub(i,3),sub(i,4),sub(i,5))),1:$data(@ops(i,0)))
 ;
order(i) new n set n=cnt(i)
 if ops(i,1)="exampleDom",n=4 quit $order(^exampleDom(sub(i,1),sub(i,2),sub(i,3),sub(i,4)))
 quit $order(@ops(i,0))
 ;
put(i) new n set n=cnt(i)
 if ops(i,1)'="exampleDom" set @ops(i,0)=arg(i) quit
 if n=3 set ^exampleDom(sub(i,1),sub(i,2),sub(i,3))=arg(i) quit
 if n=1 set ^exampleDom(sub(i,1))=arg(i) quit
 if n=4 set ^exampleDom(sub(i,1),sub(i,2),sub(i,3),sub(i,4))=arg(i) quit
 if n=5 set ^exampleDom(sub(i,1),sub(i,2),sub(i,3),sub(i,4),sub(i,5))=arg(i) quit
 set @ops(i,0)=arg(i)
 quit
 ;
right(found) if found'=exp(i),exp(i)'="*" set wrong=wrong+1
 quit
 ;
previous do right($order(@ops(i,0),-1))
 quit
kill kill @ops(i,0)
 quit
merge set target=$piece(ops(i,0),"(")_"("
 for r=1:1:$length(arg(i),",") set v=$piece(arg(i),",",r),target=target_$select(v=+v:v,1:$zwrite(v))_","
 merge @($extract(target,1,$length(target)-1)_")")=@ops(i,0)
 quit
query set r=$query(@ops(i,0))
 if r="" do right("") quit
 set v="" for target=1:1:$qlength(r) set v=v_$select(target>1:",",1:"")_$qsubscript(r,target)
 do right(v_"="_@r)
 quit
 ;
dodump new r,file,i,name set file=a,name="^"_b,r=name,answer=0
 open file:(newversion:stream:nowrap:recordsize=1048576) use file
 for  set r=$query(@r) quit:r=""  do
 . for i=1:1:$qlength(r) write $$escaped($qsubscript(r,i)),$char(9)
 . write $$escaped(@r),!
 . set answer=answer+1
 close file
 quit
 ;
escaped(text) quit:text'["\"&(text'[$char(9))&(text'[$char(10))&(text'[$char(13)) text
 new out,i,letter set out=""
 for i=1:1:$zlength(text) do
 . set letter=$zextract(text,i)
 . set out=out_$select(letter="\":"\\",letter=$char(9):"\t",letter=$char(10):"\n",letter=$char(13):"\r",1:letter)
 quit out
 ;
doclose quit
